//! What device plugins offer of the GPUs of a node, unit by unit.

use dovetail_model::device::WHOLE_DEVICE_MILLI;
use dovetail_model::{GpuFraction, GpuParts, MigTable, Resources, is_gpu_resource};
use dovetail_objects::{GpuLabels, Labels, Node, labels};

use super::count::{CountSource, GpuCount, stated, stated_of_intel};
use super::mig::{KnownLayouts, OnGpus};
use super::model::{model_of, model_of_product};
use super::other_names::perhaps_gpus;
use super::share::{
    amd_partition, counted_as, hami_gpus, is_of_replicas, is_of_shares, single_mig, slice_of,
};
use super::table::table_of;

/// Units of a resource on one node; more are a slip of whoever wrote the number, and the engine
/// counts devices in 16 bits.
pub const MOST_UNITS: i64 = 4096;

/// More replicas of a MIG instance are not looked for (NVIDIA's MPS has at most 48 clients).
const MOST_REPLICAS: i64 = 48;

/// How AMD's plugin names the partitions of a GPU that is none.
const UNPARTITIONED: &str = "spx";

/// Names of whole GPUs, under which plugins offer parts of them, too.
const WHOLE: [&str; 2] = [labels::NVIDIA_GPU, labels::AMD_GPU];

/// The GPUs of a node, and the units in which pods ask for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeGpus {
    /// The model as a label names it, without what follows it of a MIG profile; else that of the
    /// instance type.
    pub model: Option<String>,
    /// Physical GPUs, with who counts them.
    pub count: GpuCount,
    /// What plugins offer, in the order of the resources' names.
    pub units: Vec<GpuUnits>,
    /// What MIG layouts leave over, in milli-GPU.
    pub layout_rest_milli: i64,
    /// GPUs in MIG mode, beside others that have instances, that have none; they are in
    /// `layout_rest_milli`, too.
    pub without_instances: i64,
    /// GPUs that are counted and that no plugin offers: lost devices.
    pub missing: i64,
    /// The same where the node offers resources that may be these GPUs: nobody knows whether pods
    /// have them.
    pub perhaps_renamed: i64,
    /// These resources.
    pub other_names: Vec<String>,
    /// Whether nothing tells how the GPUs are cut: what their instances leave over is unknown.
    pub has_unknown_rest: bool,
}

/// Units of one resource on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuUnits {
    /// Resource name, for example `nvidia.com/mig-1g.10gb`.
    pub resource: String,
    /// What is there, also what pods cannot ask for because it is broken.
    pub built_in: i64,
    /// What pods can ask for.
    pub usable: i64,
    /// What each unit is of the node's GPUs.
    pub parts: GpuParts,
    /// Whether several pods have one device together by such units (time-slicing, MPS, HAMi).
    pub is_shared: bool,
    /// What each unit is where it is no whole GPU of its own, in words that are equal for units
    /// that are the same part of a GPU: `1g.10gb`, `1/10 shared`, `cpx_nps4`.
    pub part: Option<String>,
}

impl NodeGpus {
    /// Units of a resource that the node has; `None` if it has none.
    pub fn units_of(&self, resource: &str) -> Option<&GpuUnits> {
        self.units.iter().find(|units| units.resource == resource && units.built_in > 0)
    }

    /// Whether pods share devices of the node.
    pub fn has_shared_units(&self) -> bool {
        self.units.iter().any(GpuUnits::shares_devices)
    }

    /// Whether no plan changes the layout of its GPUs: pods share them, may have them under another
    /// name, or it is not clear how many there are.
    pub fn has_unclear_layout(&self) -> bool {
        self.has_shared_units()
            || self.perhaps_renamed > 0
            || self.count.too_few_for_instances().is_some()
    }

    /// How much of the GPUs cannot be asked for, in milli-GPU: units that are not allocatable, and
    /// GPUs that nobody offers.
    pub fn unavailable_milli(&self) -> i64 {
        let broken = self.units.iter().map(|of| of.parts.milli(of.usable, of.built_in));
        broken.sum::<i64>() + 1000 * self.missing
    }
}

impl GpuUnits {
    /// Whether pods share devices by these units. A resource that the node no longer offers, which
    /// the kubelet keeps at 0, shares nothing.
    pub fn shares_devices(&self) -> bool {
        self.is_shared && self.built_in > 0
    }

    /// Whether one unit is a whole GPU that no other pod has: no replica, instance or partition.
    pub fn are_whole_gpus(&self) -> bool {
        !self.is_shared && self.parts.milli(0, 1) >= WHOLE_DEVICE_MILLI
    }
}

/// Physical GPUs as GPU Feature Discovery counts them; 0 where no label says.
pub fn discovered_gpus(of: &Labels) -> i64 {
    let discovered = GpuLabels::read(|key| of.get(key));
    match discovered.product.and_then(single_mig) {
        // There the label counts instances.
        Some(_) => 0,
        None => discovered.count.map_or(0, i64::from),
    }
}

/// The GPUs of a node; `None` if it has none. `hami` is HAMi's annotation of it.
pub fn node_gpus(node: &Node, hami: Option<&str>) -> Option<NodeGpus> {
    node_gpus_like(node, hami, &KnownLayouts::default())
}

/// The same for one of many nodes that are read together.
pub fn node_gpus_like(node: &Node, hami: Option<&str>, layouts: &KnownLayouts) -> Option<NodeGpus> {
    let of = &node.meta.labels;
    let reader = UnitReader::new(node, hami, layouts);
    let found = reader.units();
    let mut stated = stated(of, hami_gpus(hami), reader.single.is_some());
    if reader.is_of_intel() {
        stated.extend(stated_of_intel(of));
    }
    let main = found.main_gpus();
    if let Some(place) = reader.whole_machine(&stated, &found) {
        let of_machine = stated.remove(place);
        stated.insert(0, of_machine);
    }
    let (by, counted) = match stated.first().cloned() {
        Some((by, counted)) if counted >= main => (by, counted),
        _ if found.cut.is_some() => (CountSource::Layouts, main),
        _ => (CountSource::Offered, main),
    };
    let gpus = (counted + found.other_gpus).min(MOST_UNITS);
    if gpus == 0 {
        return None;
    }
    let mut others: Vec<_> = stated.into_iter().filter(|(_, said)| *said != counted).collect();
    let beyond = found.offered_as_whole.filter(|offered| *offered > counted);
    others.extend(beyond.map(|offered| (CountSource::Offered, offered)));
    let need = found.need_without_replicas.filter(|need| *need > counted);
    others.extend(need.map(|need| (CountSource::Layouts, need)));
    let model = model_of(of).map(|product| model_of_product(product).to_owned());
    let uncounted = if found.is_cut_unknown { 0 } else { (counted - main).max(0) };
    let other_names = if uncounted > 0 { perhaps_gpus(node) } else { Vec::new() };
    let (missing, perhaps_renamed) = match other_names.is_empty() {
        true => (uncounted, 0),
        false => (0, uncounted),
    };
    Some(NodeGpus {
        model,
        count: GpuCount { gpus, by, others },
        layout_rest_milli: found.cut.as_ref().map_or(0, |cut| cut.rest_milli),
        without_instances: found.cut.as_ref().map_or(0, |cut| cut.empty),
        missing,
        perhaps_renamed,
        other_names,
        has_unknown_rest: found.is_cut_unknown,
        units: found.units,
    })
}

/// How many units of a resource pods can ask for on a node, and how many are there.
pub fn offered(node: &Node, resource: &str) -> (i64, i64) {
    let amount = |of: &Resources| of.extended.get(resource).copied().unwrap_or(0);
    let usable = amount(&node.allocatable).clamp(0, MOST_UNITS);
    (usable, amount(&node.capacity).clamp(usable, MOST_UNITS))
}

/// What is looked up while the units of a node are read.
struct UnitReader<'n> {
    node: &'n Node,
    product: Option<&'n str>,
    /// Model and profile where instances are offered under the name of whole GPUs.
    single: Option<(&'n str, &'n str)>,
    /// Replicas of each unit by the name of whole GPUs.
    replicas: i64,
    /// Whether a label states them.
    states_replicas: bool,
    /// GPUs that somebody counts.
    counted: Option<i64>,
    /// The same, or the GPUs of the machine where GPU Feature Discovery finds fewer.
    machine: Option<i64>,
    hami: Option<i64>,
    /// What each unit of Intel's plugin is of a GPU where it offers each GPU several times.
    intel: Option<GpuFraction>,
    layouts: &'n KnownLayouts,
}

/// Units, and the GPUs that they are of.
#[derive(Default)]
struct FoundUnits {
    units: Vec<GpuUnits>,
    /// Milli-GPU of units of whole GPUs of the vendor whose GPUs are counted.
    main_milli: i64,
    /// GPUs of other vendors.
    other_gpus: i64,
    cut: Option<OnGpus>,
    /// Units by the name of whole GPUs where no label says how they are shared.
    offered_as_whole: Option<i64>,
    /// GPUs that the node would need if each MIG instance were offered once, where they are taken
    /// for replicas of which neither a name nor a label tells.
    need_without_replicas: Option<i64>,
    /// Whether no table says how the GPUs are cut: then the rest of them is unknown, not missing.
    is_cut_unknown: bool,
}

impl FoundUnits {
    fn main_gpus(&self) -> i64 {
        (self.main_milli + 999) / 1000 + self.cut.as_ref().map_or(0, |cut| cut.gpus)
    }
}

/// MIG instances of one profile as a resource offers them.
struct Instances<'n> {
    resource: &'n str,
    profile: &'n str,
    usable: i64,
    built_in: i64,
    replicas: i64,
    /// No label says how many replicas each has.
    is_open: bool,
}

impl Instances<'_> {
    fn count(&self) -> i64 {
        (self.built_in + self.replicas - 1) / self.replicas
    }

    /// Units in the order of their instances, each its part of one.
    fn units(&self, instances: &[i64]) -> GpuUnits {
        let each = |milli: &i64| {
            let at = |place: i64| milli * place / self.replicas;
            (0..self.replicas).map(|place| at(place + 1) - at(place)).collect::<Vec<i64>>()
        };
        let is_shared = self.replicas > 1 || is_of_shares(self.resource);
        let of = GpuFraction { part: 1, of: self.replicas };
        let share = part_in_words(of, is_shared).map(|share| format!("{} {share}", self.profile));
        GpuUnits {
            resource: self.resource.to_owned(),
            built_in: self.built_in,
            usable: self.usable,
            parts: GpuParts::Each(instances.iter().flat_map(each).collect()),
            is_shared,
            part: Some(share.unwrap_or_else(|| self.profile.to_owned())),
        }
    }
}

impl<'n> UnitReader<'n> {
    fn new(node: &'n Node, hami: Option<&str>, layouts: &'n KnownLayouts) -> Self {
        let of = &node.meta.labels;
        let discovered = GpuLabels::read(|key| of.get(key));
        let product = model_of(of);
        let on_gke = || Some((product?, of.get(labels::GKE_PARTITION)?));
        let single = product.and_then(single_mig).or_else(on_gke);
        let clients = || of.get(labels::GKE_SHARED_CLIENTS)?.parse::<u32>().ok();
        let replicas = discovered.replicas.or_else(clients);
        let states_replicas = replicas.is_some();
        let replicas = replicas.map_or(1, i64::from).clamp(1, 4096);
        let hami = hami_gpus(hami);
        let stated = stated(of, None, single.is_some());
        let counted = stated.first().map(|(_, gpus)| *gpus);
        let machine = of_machine(&stated).map(|place| stated[place].1).or(counted);
        let reader = Self {
            node,
            product,
            single,
            replicas,
            states_replicas,
            counted,
            machine,
            hami,
            intel: None,
            layouts,
        };
        Self { intel: reader.shared_intel(), counted: reader.possible_count(), ..reader }
    }

    /// The GPUs that are counted; those of the machine where replicas that no label counts cannot
    /// be the same number on each GPU of the label.
    fn possible_count(&self) -> Option<i64> {
        let counted = self.counted?;
        let whole = offered(self.node, labels::NVIDIA_GPU).1;
        let (units, gpus) = match offered(self.node, labels::NVIDIA_SHARED).1 {
            0 => (whole, counted),
            renamed => (renamed, (counted - whole).max(1)),
        };
        let is_uneven = units > gpus && units % gpus != 0;
        let is_guessed = self.replicas == 1 && self.hami.is_none();
        if is_uneven && is_guessed { self.machine } else { Some(counted) }
    }

    /// What a unit is of an Intel GPU: the plugin offers each GPU several times
    /// (`-shared-dev-num`), and only labels count the GPUs. Where it offers fewer units than there
    /// are GPUs, it leaves devices out, and each unit is a GPU.
    fn shared_intel(&self) -> Option<GpuFraction> {
        let (_, gpus) = stated_of_intel(&self.node.meta.labels).into_iter().next()?;
        let of_intel = self.offered().filter(|(name, ..)| name.starts_with(labels::INTEL));
        let units: i64 = of_intel.map(|(_, _, built_in)| built_in).sum();
        (gpus < units).then_some(GpuFraction { part: gpus, of: units })
    }

    /// Whether all GPUs are Intel's, each offered several times: only then are they those that are
    /// counted.
    fn is_of_intel(&self) -> bool {
        let is_intel = |name: &str| name.starts_with(labels::INTEL);
        let mut offered = self.offered();
        self.intel.is_some() && offered.all(|(name, _, count)| count == 0 || is_intel(name))
    }

    /// The place of the provider's count where GPU Feature Discovery and the plugin both find fewer
    /// GPUs than the machine has: the label counts what works, so the others are lost. Replicas
    /// that no label counts say nothing of the GPUs behind them. It counts, too, where the plugin
    /// offers more GPUs than the label counts, and the machine has these.
    fn whole_machine(&self, stated: &[(CountSource, i64)], found: &FoundUnits) -> Option<usize> {
        let place = of_machine(stated)?;
        let (discovered, of_machine) = (stated[0].1, stated[place].1);
        let main = found.main_gpus();
        let is_guessed = found.units.iter().any(GpuUnits::shares_devices) && self.replicas == 1;
        let is_counted = match main <= discovered {
            true => !is_guessed,
            false => main <= of_machine,
        };
        is_counted.then_some(place)
    }

    fn offered(&self) -> impl Iterator<Item = (&'n str, i64, i64)> + use<'n> {
        let node = self.node;
        let built_in = move |name: &str| offered(node, name).1;
        let names = node.capacity.extended.keys().filter(|name| is_gpu_resource(name));
        let names = names.filter(move |name| counted_as(built_in, name).is_none());
        names.map(move |name| {
            let (usable, built_in) = offered(node, name);
            (&**name, usable, built_in)
        })
    }

    fn units(&self) -> FoundUnits {
        let is_nvidia = |name: &str| name.starts_with("nvidia.com/");
        let has_nvidia = self.offered().any(|(name, _, built_in)| is_nvidia(name) && built_in > 0);
        let mut found = FoundUnits::default();
        let mut instances = Vec::new();
        for (resource, usable, built_in) in self.offered() {
            if let Some(of) = self.instances(resource, usable, built_in) {
                instances.push(of);
                continue;
            }
            let units = self.whole(resource, usable, built_in, &mut found);
            let milli = units.parts.cut_off_milli(built_in);
            match has_nvidia && !is_nvidia(resource) {
                true => found.other_gpus += (milli + 999) / 1000,
                false => found.main_milli += milli,
            }
            found.units.push(units);
        }
        self.lay_out(&instances, &mut found);
        found.units.sort_by(|one, other| one.resource.cmp(&other.resource));
        found
    }

    /// What a resource offers of MIG instances, if it does.
    fn instances(&self, resource: &'n str, usable: i64, built_in: i64) -> Option<Instances<'n>> {
        if let Some(profile) = resource.strip_prefix(labels::NVIDIA_MIG) {
            let own = resource.strip_suffix(".shared").unwrap_or(resource);
            let replicas = self.node.meta.labels.get(&format!("{own}.replicas"));
            let replicas = replicas.and_then(|text| text.parse::<u32>().ok());
            let is_open = replicas.is_none();
            let replicas = i64::from(replicas.unwrap_or(1)).clamp(1, MOST_UNITS);
            let profile = profile.strip_suffix(".shared").unwrap_or(profile);
            return Some(Instances { resource, profile, usable, built_in, replicas, is_open });
        }
        let (_, profile) = self.single.filter(|_| resource.starts_with(labels::NVIDIA_GPU))?;
        let (replicas, is_open) = (self.replicas, !self.states_replicas);
        Some(Instances { resource, profile, usable, built_in, replicas, is_open })
    }

    /// Units of whole GPUs, or of replicas of them.
    fn whole(
        &self,
        resource: &str,
        usable: i64,
        built_in: i64,
        found: &mut FoundUnits,
    ) -> GpuUnits {
        let is_plain = WHOLE.contains(&resource) && self.replicas == 1;
        // A plugin may offer parts of GPUs that no label counts.
        let counted = match self.hami {
            Some(gpus) if gpus > 0 => Some(gpus),
            _ => self.counted.filter(|_| is_plain),
        };
        let parted =
            counted.filter(|gpus| WHOLE.contains(&resource) && (1..built_in).contains(gpus));
        let parted = parted.or_else(|| self.renamed(resource, built_in));
        let intel = self.intel.filter(|_| resource.starts_with(labels::INTEL));
        if is_plain && self.hami.is_none() || intel.is_some() && self.is_of_intel() {
            found.offered_as_whole = Some(found.offered_as_whole.unwrap_or(0) + built_in);
        }
        let is_nvidia = resource.starts_with(labels::NVIDIA_GPU);
        let parts = match parted {
            Some(gpus) => GpuFraction { part: gpus, of: built_in },
            None => intel.unwrap_or_else(|| self.slice_of(resource)),
        };
        // A partition of an AMD GPU is a device of its own.
        let is_replica = self.replicas > 1 || self.product.is_some_and(is_of_replicas);
        let is_shared = is_nvidia && (parted.is_some() || is_replica) || intel.is_some();
        let is_shared = is_shared || is_of_shares(resource);
        let partition = self.partition(resource).filter(|_| parted.is_none());
        let is_told_shared = is_shared || is_nvidia && self.tells_of_shares();
        GpuUnits {
            resource: resource.to_owned(),
            built_in,
            usable,
            parts: GpuParts::Equal(parts),
            is_shared,
            part: partition.or_else(|| part_in_words(parts, is_told_shared)),
        }
    }

    /// The partitions that AMD's plugin offers under the name of whole GPUs, as a label names them;
    /// `None` where each is a whole GPU, or where no label says.
    fn partition(&self, resource: &str) -> Option<String> {
        let partition = self.node.meta.labels.get(labels::AMD_PARTITION);
        let partition = partition.filter(|_| resource == labels::AMD_GPU)?.to_ascii_lowercase();
        (!partition.is_empty() && !partition.starts_with(UNPARTITIONED)).then_some(partition)
    }

    /// Whether a label says that pods share GPUs, among however many.
    fn tells_of_shares(&self) -> bool {
        let strategies = [labels::NVIDIA_STRATEGY, labels::GKE_STRATEGY].into_iter();
        let mut stated = strategies.filter_map(|key| self.node.meta.labels.get(key));
        stated.any(|strategy| !["", "none"].contains(&strategy))
    }

    /// The GPUs whose replicas have a name of their own, where no label says how many replicas each
    /// has: those that are counted and are not offered under the name of whole GPUs.
    fn renamed(&self, resource: &str, built_in: i64) -> Option<i64> {
        if resource != labels::NVIDIA_SHARED || self.replicas > 1 {
            return None;
        }
        let whole = offered(self.node, labels::NVIDIA_GPU).1;
        self.counted.map(|gpus| (gpus - whole).max(1)).filter(|gpus| (1..built_in).contains(gpus))
    }

    /// What one unit of a resource is of a GPU, by names and labels.
    fn slice_of(&self, resource: &str) -> GpuFraction {
        // Under the name of whole GPUs, AMD's plugin offers their partitions if all are alike.
        let of_node = || self.node.meta.labels.get(labels::AMD_PARTITION);
        match (resource, self.product) {
            (labels::AMD_GPU, product) => match of_node() {
                Some(partition) => amd_partition(partition, product),
                None => GpuFraction::WHOLE,
            },
            (_, product) => slice_of(resource, self.replicas, product),
        }
    }

    /// Puts instances on GPUs. Instances that need more GPUs than the machine has are replicas,
    /// where no label says how many replicas each has.
    fn lay_out(&self, instances: &[Instances<'_>], found: &mut FoundUnits) {
        if instances.is_empty() {
            return;
        }
        let profiles: Vec<&str> = instances.iter().map(|of| of.profile).collect();
        let table = table_of(&self.node.meta.labels, &profiles);
        let table = table.as_ref();
        let whole = (found.main_milli + 999) / 1000;
        let left = |gpus: Option<i64>| gpus.map(|gpus| gpus - whole).filter(|gpus| *gpus > 0);
        if let Some(most) = left(self.machine)
            && !self.fit(table, instances, most)
            && let Some(shared) = with_replicas(instances, |shared| self.fit(table, shared, most))
        {
            let is_untold = |of: &Instances<'_>| of.is_open && !is_of_shares(of.resource);
            if instances.iter().any(is_untold) {
                let need = self.need(table, instances);
                found.need_without_replicas = need.map(|gpus| whole + gpus);
            }
            let on = table.and_then(|table| self.on_gpus(table, &shared, Some(most)));
            // The number of replicas is a guess, and so is what a layout leaves over beside GPUs
            // that have no instance.
            let on = on.map(|on| OnGpus { rest_milli: WHOLE_DEVICE_MILLI * on.empty, ..on });
            return self.add(&shared, on, found);
        }
        let on = table.and_then(|table| {
            let on = |gpus| self.on_gpus(table, instances, gpus);
            left(self.counted).and_then(|gpus| on(Some(gpus))).or_else(|| on(None))
        });
        self.add(instances, on, found);
    }

    /// Adds instances as they lie on GPUs; where no table says how these are cut, each is its
    /// compute slices, and what is left of the GPUs is unknown.
    fn add(&self, instances: &[Instances<'_>], on: Option<OnGpus>, found: &mut FoundUnits) {
        match on {
            Some(on) => {
                let each = instances.iter().zip(&on.instances);
                found.units.extend(each.map(|(of, milli)| of.units(milli)));
                found.cut = Some(on);
            }
            None => {
                found.is_cut_unknown = true;
                for of in instances {
                    let slice = self.slice(of);
                    found.main_milli += slice.milli(of.built_in);
                    let parts = GpuParts::Equal(slice);
                    found.units.push(GpuUnits { parts, ..of.units(&[]) });
                }
            }
        }
    }

    fn on_gpus(
        &self,
        table: &MigTable,
        instances: &[Instances<'_>],
        gpus: Option<i64>,
    ) -> Option<OnGpus> {
        let counts: Vec<(&str, i64)> =
            instances.iter().map(|of| (of.profile, of.count())).collect();
        self.layouts.on_gpus(table, &counts, gpus)
    }

    /// What a unit of instances is of a GPU by the name of their profile.
    fn slice(&self, of: &Instances<'_>) -> GpuFraction {
        let product = self.product.unwrap_or_default();
        let model = self.single.map_or(product, |(model, _)| model);
        slice_of(&format!("{}{}", labels::NVIDIA_MIG, of.profile), of.replicas, Some(model))
    }

    /// The fewest GPUs that have these instances; without a table by their compute slices.
    fn need(&self, table: Option<&MigTable>, instances: &[Instances<'_>]) -> Option<i64> {
        match table {
            Some(table) => self.on_gpus(table, instances, None).map(|on| on.gpus),
            None => {
                let milli = instances.iter().map(|of| self.slice(of).milli(of.built_in));
                Some((milli.sum::<i64>() + 999) / 1000)
            }
        }
    }

    /// Whether so many GPUs can have these instances.
    fn fit(&self, table: Option<&MigTable>, instances: &[Instances<'_>], gpus: i64) -> bool {
        match table {
            Some(table) => self.on_gpus(table, instances, Some(gpus)).is_some(),
            None => self.need(None, instances).is_some_and(|need| need <= gpus),
        }
    }
}

/// What a unit is in words, where it is no whole GPU of its own.
fn part_in_words(of_gpu: GpuFraction, is_shared: bool) -> Option<String> {
    let GpuFraction { part, of } = of_gpu;
    let common = common_divisor(part, of);
    let share = (part != of).then(|| format!("{}/{}", part / common, of / common));
    match (share, is_shared) {
        (Some(share), true) => Some(format!("{share} shared")),
        (share, false) => share,
        (None, true) => Some("shared".to_owned()),
    }
}

/// The greatest number that divides both, at least 1.
fn common_divisor(one: i64, other: i64) -> i64 {
    match other {
        0 => one.max(1),
        _ => common_divisor(other, one % other),
    }
}

/// The place of the provider's count or that of the instance type, if GPU Feature Discovery counts
/// fewer GPUs.
fn of_machine(stated: &[(CountSource, i64)]) -> Option<usize> {
    let (CountSource::Discovery, discovered) = stated.first()? else { return None };
    stated.iter().position(|(by, gpus)| {
        matches!(by, CountSource::Provider(_) | CountSource::InstanceType(_)) && gpus > discovered
    })
}

/// The instances with the fewest replicas with which they fit, where no label says how many there
/// are: with as many of each instance, if that is possible.
fn with_replicas<'n>(
    instances: &[Instances<'n>],
    fit: impl Fn(&[Instances<'n>]) -> bool,
) -> Option<Vec<Instances<'n>>> {
    if !instances.iter().any(|of| of.is_open) {
        return None;
    }
    let with = |replicas: i64| -> Vec<Instances<'n>> {
        let of = |of: &Instances<'n>| {
            let replicas = if of.is_open { replicas } else { of.replicas };
            Instances { replicas, is_open: false, ..*of }
        };
        instances.iter().map(of).collect()
    };
    let is_even =
        |replicas: &i64| instances.iter().all(|of| !of.is_open || of.built_in % replicas == 0);
    let even = (2..=MOST_REPLICAS).filter(is_even);
    even.chain(2..=MOST_REPLICAS).map(with).find(|shared| fit(shared))
}
