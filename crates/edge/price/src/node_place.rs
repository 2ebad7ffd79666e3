//! Where a node stands and how it is bought, from its labels.

use dovetail_objects::labels;
use std::collections::BTreeMap;

use crate::price::Purchase;

/// What a node's labels and provider id say about its price. What they do not say is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodePlace {
    /// Provider by its name in the book: `aws`, `gcp`, `azure`.
    pub provider: Option<&'static str>,
    /// Region, for example `us-east-1`.
    pub region: Option<String>,
    /// Instance type, for example `p5.48xlarge`.
    pub instance_type: Option<String>,
    /// How it is bought; on demand where nothing says otherwise.
    pub purchase: Purchase,
}

/// Schemes of `spec.providerID`, and labels that only one provider sets.
const PROVIDERS: [(&str, &str, &[&str]); 3] = [
    ("aws", "aws://", &["eks.amazonaws.com/", "karpenter.k8s.aws/", "alpha.eksctl.io/"]),
    ("gcp", "gce://", &["cloud.google.com/"]),
    ("azure", "azure://", &["kubernetes.azure.com/"]),
];

const REGION: [&str; 2] = [labels::REGION, labels::OLD_REGION];
const INSTANCE_TYPE: [&str; 2] = [labels::INSTANCE_TYPE, labels::OLD_INSTANCE_TYPE];

/// Any value but none.
const ANY: &str = "";

/// Labels, with the value in lower case, that say how a node is bought.
const PURCHASES: [(&str, &str, Purchase); 9] = [
    (labels::KARPENTER_CAPACITY_TYPE, "spot", Purchase::Spot),
    (labels::KARPENTER_CAPACITY_TYPE, "reserved", Purchase::Committed),
    (labels::EKS_CAPACITY_TYPE_LOWER, "spot", Purchase::Spot),
    (labels::EKS_CAPACITY_TYPE_LOWER, "capacity_block", Purchase::Committed),
    (labels::GKE_SPOT, "true", Purchase::Spot),
    (labels::GKE_PREEMPTIBLE, "true", Purchase::Spot),
    ("cloud.google.com/reservation-affinity", "specific", Purchase::Committed),
    // A reservation is billed whether its machines run or not.
    ("cloud.google.com/reservation-name", ANY, Purchase::Committed),
    (labels::AZURE_PRIORITY, "spot", Purchase::Spot),
];

/// Labels that say something about a node's price, as they are written on nodes; for readers that
/// must ask for labels by name.
pub fn place_labels() -> impl Iterator<Item = &'static str> {
    // Keys are compared without case; this one is written with a capital.
    let written = [labels::EKS_CAPACITY_TYPE];
    let bought = PURCHASES.iter().map(|(key, ..)| *key);
    REGION.into_iter().chain(INSTANCE_TYPE).chain(bought).chain(written)
}

/// Reads the place of a node. `provider_id` is its `spec.providerID`, which may be empty.
pub fn node_place(labels: &BTreeMap<String, String>, provider_id: &str) -> NodePlace {
    let by_id = PROVIDERS.iter().find(|(_, scheme, _)| provider_id.starts_with(scheme));
    let by_label = || {
        PROVIDERS.iter().find(|(_, _, prefixes)| {
            labels.keys().any(|key| prefixes.iter().any(|prefix| key.starts_with(prefix)))
        })
    };
    let first = |keys: &[&str]| {
        let found = keys.iter().find_map(|key| labels.get(*key));
        found.filter(|value| !value.is_empty()).cloned()
    };
    let bought = |(key, value, purchase): &(&str, &str, Purchase)| {
        let found = labels.iter().find(|(label, _)| label.eq_ignore_ascii_case(key));
        let is_meant = |is: &str| match *value {
            ANY => !is.is_empty(),
            value => is.eq_ignore_ascii_case(value),
        };
        found.filter(|(_, is)| is_meant(is)).map(|_| *purchase)
    };
    NodePlace {
        provider: by_id.or_else(by_label).map(|(name, ..)| *name),
        region: first(&REGION),
        instance_type: first(&INSTANCE_TYPE),
        purchase: PURCHASES.iter().find_map(bought).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(labels: &[(&str, &str)], id: &str) -> NodePlace {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        node_place(&labels.collect(), id)
    }

    #[test]
    fn nodes_of_three_clouds_say_where_they_stand_and_how_they_are_bought() {
        let aws = place(
            &[
                ("topology.kubernetes.io/region", "us-east-1"),
                ("node.kubernetes.io/instance-type", "p5.48xlarge"),
                ("eks.amazonaws.com/capacityType", "SPOT"),
            ],
            "aws:///us-east-1a/i-0",
        );
        assert_eq!((aws.provider, aws.region.as_deref()), (Some("aws"), Some("us-east-1")));
        assert_eq!(
            (aws.instance_type.as_deref(), aws.purchase),
            (Some("p5.48xlarge"), Purchase::Spot)
        );
        // Without a provider id the labels tell.
        let gcp = place(&[("cloud.google.com/gke-spot", "true")], "");
        assert_eq!((gcp.provider, gcp.purchase), (Some("gcp"), Purchase::Spot));
        let reserved =
            place(&[("karpenter.sh/capacity-type", "reserved")], "aws:///us-east-1a/i-0");
        assert_eq!((reserved.provider, reserved.purchase), (Some("aws"), Purchase::Committed));
        let of_gke = |name: &str| place(&[("cloud.google.com/reservation-name", name)], "gce://x");
        assert_eq!(of_gke("h100-block").purchase, Purchase::Committed);
        assert_eq!(of_gke("").purchase, Purchase::OnDemand);
        let azure = place(&[("kubernetes.azure.com/scalesetpriority", "regular")], "azure:///x");
        assert_eq!((azure.provider, azure.purchase), (Some("azure"), Purchase::OnDemand));
        assert_eq!(
            place(&[("topology.kubernetes.io/region", "")], "kind://x"),
            NodePlace::default()
        );
    }
}
