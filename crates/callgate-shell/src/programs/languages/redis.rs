//! Redis commands, one per line.

use super::CodeEffects;
use crate::lists::listed;

const READS: &str = "GET MGET EXISTS TTL PTTL TYPE KEYS SCAN HGET HGETALL HMGET HKEYS HVALS HLEN HEXISTS HSCAN \
    HSTRLEN HRANDFIELD LRANGE LLEN LINDEX LPOS SMEMBERS SISMEMBER SMISMEMBER SCARD SSCAN \
    SRANDMEMBER SINTER SUNION SDIFF SINTERCARD ZRANGE ZRANGEBYSCORE ZREVRANGE ZREVRANGEBYSCORE \
    ZRANGEBYLEX ZREVRANGEBYLEX ZSCORE ZMSCORE ZCARD ZCOUNT ZRANK ZREVRANK ZSCAN ZLEXCOUNT \
    ZRANDMEMBER ZINTER ZUNION ZDIFF STRLEN GETRANGE SUBSTR GETBIT BITCOUNT BITPOS PFCOUNT \
    XRANGE XREVRANGE XLEN XINFO XREAD XPENDING GEOPOS GEODIST GEOHASH GEOSEARCH INFO DBSIZE \
    PING ECHO TIME LASTSAVE ROLE RANDOMKEY DUMP TOUCH SELECT AUTH HELLO QUIT WAIT LOLWUT \
    EXPIRETIME PEXPIRETIME LCS OBJECT MULTI EXEC DISCARD WATCH UNWATCH ASKING READONLY RESET \
    JSON.GET";

const WRITES: &str = "SET SETEX PSETEX SETNX MSET MSETNX GETSET GETEX APPEND SETRANGE SETBIT BITOP BITFIELD INCR \
    INCRBY INCRBYFLOAT DECR DECRBY HSET HSETNX HMSET HINCRBY HINCRBYFLOAT LPUSH LPUSHX RPUSH \
    RPUSHX LINSERT LSET LMOVE RPOPLPUSH BLMOVE SADD SMOVE SINTERSTORE SUNIONSTORE SDIFFSTORE \
    ZADD ZINCRBY ZUNIONSTORE ZINTERSTORE ZDIFFSTORE ZRANGESTORE XADD XACK XGROUP XCLAIM \
    XAUTOCLAIM XREADGROUP GEOADD GEOSEARCHSTORE PFADD PFMERGE PUBLISH SPUBLISH EXPIRE PEXPIRE \
    EXPIREAT PEXPIREAT PERSIST COPY SAVE BGSAVE BGREWRITEAOF RESTORE JSON.SET";

const DESTROYS: &str = "DEL UNLINK GETDEL FLUSHALL FLUSHDB HDEL LPOP RPOP BLPOP BRPOP LMPOP LREM LTRIM SPOP SREM \
    ZREM ZPOPMIN ZPOPMAX BZPOPMIN BZPOPMAX ZMPOP ZREMRANGEBYSCORE ZREMRANGEBYRANK \
    ZREMRANGEBYLEX XDEL XTRIM RENAME RENAMENX MOVE SWAPDB SHUTDOWN";

/// Subcommands of `CONFIG`, `CLIENT`, `CLUSTER` and others that only look.
const LOOKING_SUBCOMMANDS: &str = "GET LIST INFO ID GETNAME LEN USAGE STATS DOCTOR LATEST HISTORY COUNT DOCS NODES SLOTS SHARDS CHANNELS NUMSUB \
    NUMPAT WHOAMI CAT HELP";

/// Whether a setting, or a pattern that may mean several, is among those that hold passwords.
fn holds_password(setting: &str) -> bool {
    const SETTINGS: [&str; 4] = ["REQUIREPASS", "MASTERAUTH", "MASTERUSER", "TLS-KEY-FILE-PASS"];
    let front = setting.split(['*', '?', '[']).next().unwrap_or_default();
    SETTINGS.iter().any(|name| *name == setting || front.len() < setting.len() && name.starts_with(front))
        || setting.contains("PASS")
}

pub(super) fn read(code: &str) -> CodeEffects {
    let mut found = CodeEffects::default();
    for line in code.lines() {
        let mut words = line.split_whitespace().map(str::to_ascii_uppercase);
        let Some(first) = words.next() else { continue };
        // `redis-cli 5 GET x` repeats.
        let command =
            if first.bytes().all(|byte| byte.is_ascii_digit()) { words.next().unwrap_or_default() } else { first };
        let second = words.next().unwrap_or_default();
        let shows_passwords = match (command.as_str(), second.as_str()) {
            ("CONFIG", "GET") => words.next().is_none_or(|setting| holds_password(&setting)),
            ("ACL", "LIST" | "GETUSER") => true,
            _ => false,
        };
        if shows_passwords {
            found.doubt("shows passwords of the redis server");
            continue;
        }
        let looks = match command.as_str() {
            "CONFIG" | "CLIENT" | "SLOWLOG" | "MEMORY" | "LATENCY" | "COMMAND" | "CLUSTER" | "PUBSUB" | "MODULE"
            | "ACL" => second.is_empty() || listed(LOOKING_SUBCOMMANDS, &second),
            other => listed(READS, other),
        };
        if looks {
            continue;
        }
        if listed(DESTROYS, &command) {
            found.destroys = true;
        } else if listed(WRITES, &command) {
            found.sends = true;
        } else {
            found.doubt(format!("unknown redis command {command} {second}"));
        }
    }
    found
}
