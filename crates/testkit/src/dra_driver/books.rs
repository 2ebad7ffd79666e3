//! What is drawn from the GPUs of one node, and for which claims: the driver's own books.
//!
//! They know nothing of how devices were chosen. As on a real GPU, an instance is made if what it
//! needs is there, whoever says that it is.

use std::collections::{BTreeMap, BTreeSet};

use super::gpu::DraGpu;

/// A counter of one of the GPUs of a node.
type CounterKey = (usize, String);

/// The books of one node.
#[derive(Debug, Default)]
pub(super) struct Books {
    /// What each GPU has.
    present: BTreeMap<CounterKey, u64>,
    /// What is drawn from each GPU.
    drawn: BTreeMap<CounterKey, u64>,
    /// What each device draws, by its name.
    offered: BTreeMap<String, Vec<(CounterKey, u64)>>,
    /// By the UID of the claim.
    prepared: BTreeMap<String, Prepared>,
}

/// A claim whose devices are there.
#[derive(Debug)]
struct Prepared {
    devices: Vec<ClaimedDevice>,
    /// UIDs of the pods that use it.
    pods: BTreeSet<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClaimedDevice {
    pub(super) name: String,
    /// With admin access a device is looked at, whoever has it.
    pub(super) is_admin: bool,
}

impl Books {
    pub(super) fn of(gpus: &[DraGpu]) -> Self {
        let mut books = Self::default();
        for (number, gpu) in gpus.iter().enumerate() {
            let key = |counter: String| (number, counter);
            let present = gpu.counters().into_iter();
            books.present.extend(present.map(|(counter, amount)| (key(counter), amount)));
            for device in gpu.devices(number) {
                let draws = device.draws().into_iter();
                let draws = draws.map(|(counter, amount)| (key(counter), amount)).collect();
                books.offered.insert(device.name, draws);
            }
        }
        books
    }

    /// Makes the devices of a claim for a pod, all or none.
    ///
    /// # Errors
    /// Why not: there is no such device, its GPU has not what it needs, or the claim is prepared
    /// with other devices.
    pub(super) fn prepare(
        &mut self,
        claim: &str,
        devices: Vec<ClaimedDevice>,
        pod: &str,
    ) -> Result<(), String> {
        if let Some(prepared) = self.prepared.get_mut(claim) {
            if prepared.devices != devices {
                let (had, has) = (names(&prepared.devices), names(&devices));
                return Err(format!("it is prepared with {had}, and has {has} now"));
            }
            prepared.pods.insert(pod.to_owned());
            return Ok(());
        }
        let mut drawn = self.drawn.clone();
        for device in &devices {
            let draws = self.offered.get(&device.name);
            let draws = draws.ok_or_else(|| format!("there is no device {}", device.name))?;
            for (key, amount) in draws.iter().filter(|_| !device.is_admin) {
                let now = drawn.entry(key.clone()).or_default();
                *now += amount;
                let present = self.present.get(key).copied().unwrap_or(0);
                if *now > present {
                    let (gpu, counter) = key;
                    let (name, others) = (&device.name, *now - amount);
                    return Err(format!(
                        "device {name} needs {amount} {counter} of GPU {gpu}, which has {present}, \
                         of which {others} are taken"
                    ));
                }
            }
        }
        self.drawn = drawn;
        let pods = BTreeSet::from([pod.to_owned()]);
        self.prepared.insert(claim.to_owned(), Prepared { devices, pods });
        Ok(())
    }

    /// A pod uses its claims no more. Devices of claims that nobody uses are taken away.
    pub(super) fn unprepare(&mut self, pod: &str) {
        for prepared in self.prepared.values_mut() {
            prepared.pods.remove(pod);
        }
        let unused = self.prepared.extract_if(.., |_, prepared| prepared.pods.is_empty());
        let devices: Vec<ClaimedDevice> = unused.flat_map(|(_, claim)| claim.devices).collect();
        for device in devices.iter().filter(|device| !device.is_admin) {
            for (key, amount) in self.offered.get(&device.name).into_iter().flatten() {
                if let Some(drawn) = self.drawn.get_mut(key) {
                    *drawn -= amount;
                }
            }
        }
    }

    /// UIDs of the pods that use a claim.
    pub(super) fn pods(&self) -> BTreeSet<String> {
        self.prepared.values().flat_map(|prepared| prepared.pods.iter().cloned()).collect()
    }

    /// Names of the devices that are there.
    pub(super) fn devices(&self) -> Vec<String> {
        let devices = self.prepared.values().flat_map(|prepared| &prepared.devices);
        let mut devices: Vec<String> = devices.map(|device| device.name.clone()).collect();
        devices.sort();
        devices
    }
}

fn names(devices: &[ClaimedDevice]) -> String {
    let names: Vec<&str> = devices.iter().map(|device| &*device.name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepare(books: &mut Books, claim: &str, devices: &[&str], pod: &str) -> Result<(), String> {
        let device = |name: &&str| ClaimedDevice { name: (*name).to_owned(), is_admin: false };
        books.prepare(claim, devices.iter().map(device).collect(), pod)
    }

    #[test]
    fn what_a_gpu_has_is_drawn_once_and_comes_back_when_the_last_pod_ends() {
        let mut books = Books::of(&[DraGpu::H100]);
        let half = ["gpu-0-mig-3g40gb-9-0"];
        assert_eq!(prepare(&mut books, "a", &half, "p"), Ok(()));
        assert_eq!(prepare(&mut books, "a", &half, "q"), Ok(()));
        // Over the same memory slices, by the GPU as a whole, and twice in one claim.
        let other = "gpu-0-mig-1g10gb-19-4";
        for devices in [&["gpu-0-mig-1g10gb-19-3"] as &[&str], &["gpu-0"], &[other, other]] {
            let refused = prepare(&mut books, "b", devices, "r").unwrap_err();
            assert!(refused.contains("of GPU 0, which has"), "{refused}");
        }
        assert_eq!(books.devices(), half);
        books.unprepare("p");
        assert!(prepare(&mut books, "b", &["gpu-0"], "r").is_err());
        books.unprepare("q");
        assert_eq!(prepare(&mut books, "b", &["gpu-0"], "r"), Ok(()));
        books.unprepare("r");
        assert!(books.drawn.values().all(|drawn| *drawn == 0));
    }

    /// Places do not say it: two instances lie beside each other, and only one set of media engines
    /// is there.
    #[test]
    fn counters_without_a_place_are_counted_too() {
        let mut books = Books::of(&[DraGpu::A100_40GB]);
        assert_eq!(prepare(&mut books, "a", &["gpu-0-mig-1g5gb-me-20-0"], "p"), Ok(()));
        let refused = prepare(&mut books, "b", &["gpu-0-mig-1g5gb-me-20-1"], "q").unwrap_err();
        assert!(refused.contains("1 jpeg-engines of GPU 0, which has 1"), "{refused}");
    }

    #[test]
    fn a_claim_keeps_its_devices_while_a_pod_uses_it() {
        let mut books = Books::of(&[DraGpu::A100_40GB]);
        assert_eq!(prepare(&mut books, "a", &["gpu-0-mig-1g5gb-19-0"], "p"), Ok(()));
        let refused = prepare(&mut books, "a", &["gpu-0-mig-1g5gb-19-1"], "q").unwrap_err();
        assert!(refused.contains("19-0, and has gpu-0-mig-1g5gb-19-1 now"), "{refused}");
        assert!(prepare(&mut books, "b", &["gpu-1"], "q").unwrap_err().contains("no device gpu-1"));
    }
}
