//! The impure part: finds the file, reads the environment and looks around.

use super::problem::{Origin, Problem};
use super::reader::FileText;
use super::resolve::{Flags, Inputs, Place};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

/// A configuration file larger than this is something else given by mistake.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Inputs for this process. `file` is `-c FILE`; without it `./reactor.toml`, then the user's configuration directory.
pub fn gather(file: Option<&Path>, flags: Flags) -> Result<Inputs, Vec<Problem>> {
    let directories = directories::ProjectDirs::from("", "", "reactor");
    let file = match file {
        Some(path) => Some(read_file(path)?),
        None => {
            let candidates =
                [Some(PathBuf::from("reactor.toml")), directories.as_ref().map(|d| d.config_dir().join("reactor.toml"))];
            match candidates.into_iter().flatten().find(|path| path.is_file()) {
                Some(path) => Some(read_file(&path)?),
                None => None,
            }
        }
    };
    let variables = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let in_image = std::env::var_os("REACTOR_IMAGE").is_some_and(|value| value == "1");
    Ok(Inputs {
        file,
        variables: variables.collect(),
        flags,
        place: Place {
            user_data: directories.map(|directories| directories.data_local_dir().to_path_buf()),
            in_image,
            data_mounted: in_image && is_mounted(Path::new("/data")),
            container_gateway: if in_image { default_gateway() } else { None },
        },
    })
}

pub fn read_file(path: &Path) -> Result<FileText, Vec<Problem>> {
    let refuse = |what: String, fix: &str| {
        vec![Problem {
            origin: Origin::Flag("-c"),
            key: String::new(),
            what: format!("{}: {what}", path.display()),
            fix: Some(fix.into()),
        }]
    };
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => return Err(refuse("is a directory".into(), "Name the file in it.")),
        Ok(metadata) if metadata.len() > FILE_BYTES_MAX => {
            return Err(refuse(format!("is larger than {FILE_BYTES_MAX} bytes"), "Name a reactor.toml."));
        }
        Ok(_) => {}
        Err(error) => return Err(refuse(error.to_string(), "Check the path, or run `reactor init` to make one.")),
    }
    let bytes = std::fs::read(path).map_err(|error| refuse(error.to_string(), "Check its permissions."))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let line = error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
        refuse(format!("line {line} is not UTF-8"), "Save it as UTF-8.")
    })?;
    Ok(FileText { path: path.to_path_buf(), text })
}

/// Whether something is mounted exactly at `path`.
fn is_mounted(path: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    mounts.lines().filter_map(|line| line.split(' ').nth(1)).any(|point| Path::new(point) == path)
}

/// The IPv4 default route's gateway: in a container, the host.
fn default_gateway() -> Option<IpAddr> {
    parse_routes(&std::fs::read_to_string("/proc/net/route").ok()?)
}

/// `Iface Destination Gateway …`, addresses as host-order hex of the network bytes.
fn parse_routes(routes: &str) -> Option<IpAddr> {
    let gateway = routes.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (destination, gateway) = (fields.next()?, fields.next()?);
        (destination == "00000000").then(|| u32::from_str_radix(gateway, 16).ok()).flatten()
    })?;
    (gateway != 0).then(|| IpAddr::V4(Ipv4Addr::from(gateway.to_ne_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_gateway_is_read_from_the_route_table() {
        let routes = "Iface\tDestination\tGateway\tFlags\neth0\t000011AC\t00000000\t0001\neth0\t00000000\t010011AC\t0003\n";
        assert_eq!(parse_routes(routes), Some("172.17.0.1".parse().expect("an address")));
        assert_eq!(parse_routes("Iface\n"), None);
    }
}
