//! What an operator should know about an etcd.

use super::{
    directory,
    transaction::{ask, is, put, transact},
};
use crate::{findings::Finding, remote::context::Context};
use randflake::Result;

/// Looks at the cluster, and changes nothing.
pub(crate) async fn examine(context: &Context) -> Result<Vec<Finding>> {
    let status = ask(context, "/v3/maintenance/status").await?;
    let version = status["version"].as_str().unwrap_or("of an unknown version");
    let mut findings = vec![Finding::fine("server", format!("etcd {version}"))];

    let errors: Vec<_> =
        status["errors"].as_array().into_iter().flatten().filter_map(|it| it.as_str()).collect();
    findings.push(if errors.is_empty() {
        Finding::fine("persistence", "etcd acknowledges what a majority has on its disks")
    } else {
        Finding::wrong("persistence", format!("it reports {}; resolve that", errors.join(", ")))
    });

    // Some users lack the right to ask for it.
    if let Ok(answer) = ask(context, "/v3/cluster/member/list").await {
        let members = answer["members"].as_array().map_or(0, Vec::len);
        findings.push(if members > 1 {
            Finding::fine("replicas", format!("the cluster has {members} members"))
        } else {
            Finding::note(
                "replicas",
                "the cluster has only one member: if it is down, nothing is granted",
            )
        });
    }

    // etcd checks the right to write before it compares, and this comparison never holds because a
    // key has one value. Even if the key were written, nothing reads it.
    let key = format!("{}examine", directory(context));
    let never = vec![is(&key, Some("1")), is(&key, Some("2"))];
    findings.push(match transact(context, never, vec![put(&key, "")], vec![]).await {
        Ok(_) => Finding::fine("permissions", "its user may read and write the keys"),
        Err(error) => Finding::wrong(
            "permissions",
            format!("its user may not write below randflake/: {error}; grant it"),
        ),
    });
    Ok(findings)
}
