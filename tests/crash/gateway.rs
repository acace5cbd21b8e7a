//! The gateway that outlives the engine: a process that holds the agents of a folder until it is killed.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use sillage::acp::AcpRuntime;
use sillage_relais::gateway::{Bounds, Server, Token};
use sillage_relais::{ClientOptions, Gateway, GatewayOptions, RelaisClient};
use tokio::net::TcpListener;

use crate::drive::{Failure, agent, options};

/// Nobody else reads it: it is of no folder that anybody shares.
const TOKEN: &str = "a token of a test, in a folder of its own";

/// `gateway FOLDER`: says in the file `gateway` where it listens.
pub(crate) fn main(folder: &Path) -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    match runtime.block_on(serve(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}: {:?}", error.source());
            ExitCode::FAILURE
        }
    }
}

async fn serve(folder: &Path) -> Result<(), Failure> {
    let agents = Arc::new(AcpRuntime::new(vec![agent(folder)?], options()?));
    let gateway = Gateway::open(agents, GatewayOptions::new(folder.join("sessions")))?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let server = Server::new(&gateway, listener, Token::new(TOKEN), Bounds::default())?;
    let told = folder.join("gateway.new");
    fs::write(&told, format!("http://{}", server.address()))?;
    // Whoever reads it reads all of it.
    fs::rename(told, folder.join("gateway"))?;
    gateway.begin();
    server.serve(std::future::pending()).await;
    Ok(())
}

/// A client of the gateway of this folder; none where it has none.
pub(crate) fn client(folder: &Path) -> Result<Option<RelaisClient>, Failure> {
    match fs::read_to_string(folder.join("gateway")) {
        Ok(url) => Ok(Some(RelaisClient::new(&url, TOKEN, ClientOptions::new("crash"))?)),
        Err(_) => Ok(None),
    }
}
