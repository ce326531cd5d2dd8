//! Who waits for whom. Built from all definitions at once, so that a cycle or an unknown name is refused before anything starts.
//! Knows nothing of processes or states.

use crate::model::refusal::{Refusal, RefusalKind};
use crate::model::service::ServiceName;
use crate::model::service_spec::ServiceSpec;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// Dependencies before their dependants.
    start_order: Vec<ServiceName>,
    dependants: BTreeMap<ServiceName, BTreeSet<ServiceName>>,
}

impl Graph {
    pub fn build(specs: &[ServiceSpec]) -> Result<Self, Refusal> {
        let mut by_name = BTreeMap::new();
        for spec in specs {
            if by_name.insert(&spec.name, spec).is_some() {
                let what = format!("service {} is defined twice", spec.name);
                return Err(Refusal::new(RefusalKind::Invalid, what).hint("Give each service its own name."));
            }
        }
        let mut walk = Walk { by_name: &by_name, done: BTreeSet::new(), path: Vec::new(), order: Vec::new() };
        for spec in specs {
            walk.visit(spec)?;
        }
        let start_order = walk.order;
        let mut dependants: BTreeMap<ServiceName, BTreeSet<ServiceName>> = BTreeMap::new();
        for spec in specs {
            for dependency in &spec.depends_on {
                dependants.entry(dependency.clone()).or_default().insert(spec.name.clone());
            }
        }
        Ok(Graph { start_order, dependants })
    }

    pub fn start_order(&self) -> &[ServiceName] {
        &self.start_order
    }

    /// Services that wait for `service` and so stop before it.
    pub fn dependants(&self, service: &ServiceName) -> impl Iterator<Item = &ServiceName> {
        self.dependants.get(service).into_iter().flatten()
    }
}

/// Depth first; `path` is the chain of services being looked at, so a service met again on it closes a cycle. The depth is
/// bounded by the number of services.
struct Walk<'a> {
    by_name: &'a BTreeMap<&'a ServiceName, &'a ServiceSpec>,
    done: BTreeSet<&'a ServiceName>,
    path: Vec<&'a ServiceName>,
    order: Vec<ServiceName>,
}

impl<'a> Walk<'a> {
    fn visit(&mut self, spec: &'a ServiceSpec) -> Result<(), Refusal> {
        if self.done.contains(&spec.name) {
            return Ok(());
        }
        if let Some(at) = self.path.iter().position(|name| **name == spec.name) {
            let cycle: Vec<&str> = self.path[at..].iter().map(|name| name.as_str()).chain([spec.name.as_str()]).collect();
            let what = format!("services wait for each other in a circle: {}", cycle.join(" → "));
            return Err(Refusal::new(RefusalKind::Invalid, what).hint("Remove one of these from depends_on."));
        }
        self.path.push(&spec.name);
        for dependency in &spec.depends_on {
            let Some(next) = self.by_name.get(dependency) else {
                let what = format!("service {} depends on {dependency}, which is not defined", spec.name);
                let hint = format!("Add [services.{dependency}], or remove it from depends_on.");
                return Err(Refusal::new(RefusalKind::Invalid, what).hint(hint));
            };
            self.visit(next)?;
        }
        self.path.pop();
        self.done.insert(&spec.name);
        self.order.push(spec.name.clone());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::service_spec::CommandLine;

    fn name(text: &str) -> ServiceName {
        ServiceName::new(text).expect("a valid name")
    }

    /// `"orders: payments catalog"` per service.
    fn specs(lines: &[&str]) -> Vec<ServiceSpec> {
        let parse = |line: &&str| {
            let (service, dependencies) = line.split_once(':').expect("a colon");
            let mut spec = ServiceSpec::new(name(service), CommandLine::Text("true".into()), "/".into());
            spec.depends_on = dependencies.split_whitespace().map(name).collect();
            spec
        };
        lines.iter().map(parse).collect()
    }

    #[test]
    fn dependencies_come_before_their_dependants() {
        let graph =
            Graph::build(&specs(&["web: orders", "orders: payments catalog", "payments:", "catalog:"])).expect("no cycle");
        let order: Vec<&str> = graph.start_order().iter().map(ServiceName::as_str).collect();
        assert_eq!(order, ["payments", "catalog", "orders", "web"]);
        assert_eq!(graph.dependants(&name("payments")).map(ServiceName::as_str).collect::<Vec<_>>(), ["orders"]);
        assert_eq!(graph.dependants(&name("web")).count(), 0);
    }

    #[test]
    fn a_cycle_is_refused_with_its_path() {
        let refusal = Graph::build(&specs(&["a: b", "b: c", "c: b"])).expect_err("a cycle");
        assert!(refusal.what.contains("b → c → b"), "{refusal}");
        let refusal = Graph::build(&specs(&["a: a"])).expect_err("a cycle");
        assert!(refusal.what.contains("a → a"), "{refusal}");
    }

    #[test]
    fn an_unknown_dependency_is_refused_by_name() {
        let refusal = Graph::build(&specs(&["a: nowhere"])).expect_err("unknown");
        assert!(refusal.to_string().contains("[services.nowhere]"), "{refusal}");
        assert!(Graph::build(&specs(&["a:", "a:"])).is_err());
    }
}
