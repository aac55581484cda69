//! Takes etcd-client of crates.io through what test/clients asks of each client.

use etcd_client::{Certificate, Client, Compare, CompareOp, ConnectOptions, Error, LockOptions, PutOptions, TlsOptions, Txn, TxnOp};
use std::{env, fs, process};

type Outcome = Result<(), Box<dyn std::error::Error>>;

async fn connect(password: &str) -> Result<Client, Box<dyn std::error::Error>> {
    let tls = TlsOptions::new().ca_certificate(Certificate::from_pem(fs::read(env::var("CA")?)?));
    let options = ConnectOptions::new().with_user("app", password).with_tls(tls);
    Ok(Client::connect([format!("https://{}", env::var("ENDPOINT")?)], Some(options)).await?)
}

fn check(condition: bool, what: &str) -> Outcome {
    if condition { Ok(()) } else { Err(what.into()) }
}

async fn run() -> Outcome {
    let mut client = connect("apw").await?;
    client.put("app/rust", "1", None).await?;
    let got = client.get("app/rust", None).await?;
    check(got.kvs().first().map(|kv| kv.value()) == Some(b"1"), "put")?;
    println!("ok put");

    for want in [true, false] {
        let txn = Txn::new()
            .when([Compare::value("app/rust", CompareOp::Equal, "1")])
            .and_then([TxnOp::put("app/rust", "2", None)]);
        check(client.txn(txn).await?.succeeded() == want, "txn")?;
    }
    println!("ok txn");

    let mut events = client.watch("app/rust", None).await?;
    client.put("app/rust", "3", None).await?;
    loop {
        let answer = events.message().await?.ok_or("watch: the stream ended")?;
        if let Some(event) = answer.events().first() {
            check(event.kv().map(|kv| kv.value()) == Some(b"3"), "watch")?;
            break;
        }
    }
    println!("ok watch");

    let lease = client.lease_grant(30, None).await?.id();
    client.put("app/leased", "1", Some(PutOptions::new().with_lease(lease))).await?;
    let (mut keeper, mut kept) = client.lease_keep_alive(lease).await?;
    keeper.keep_alive().await?;
    check(kept.message().await?.map(|answer| answer.ttl() > 0) == Some(true), "lease: keep-alive")?;
    client.lease_revoke(lease).await?;
    check(client.get("app/leased", None).await?.kvs().is_empty(), "lease: key after the end")?;
    println!("ok lease");

    let holder = client.lease_grant(10, None).await?.id();
    let held = client.lock("app/lock", Some(LockOptions::new().with_lease(holder))).await?;
    client.unlock(held.key().to_vec()).await?;
    client.lease_revoke(holder).await?;
    println!("ok lock");

    match client.put("other", "1", None).await {
        Err(Error::GRpcStatus(status)) => check(status.message().contains("permission denied"), status.message())?,
        _ => check(false, "auth: a key that is not permitted")?,
    }
    check(connect("wrong").await.is_err(), "auth: a wrong password")?;
    println!("ok auth");
    println!("ok tls");
    Ok(())
}

#[tokio::main]
async fn main() {
    if let Err(error) = run().await {
        eprintln!("failed: {error}");
        process::exit(1);
    }
}
