//! Bad input is refused with the place and the mend.

use super::*;

fn refusal(jobs: &[BaselineJob], overheads: Option<&StartOverheads>) -> String {
    let cluster = cluster(&[8, 8]);
    replay_baseline(jobs, &cluster, BaselineOrder::Srsf, overheads, &mut |_| {})
        .expect_err("bad input")
        .to_string()
}

#[test]
fn jobs_that_cannot_be_replayed_are_named() {
    assert!(refusal(&[], None).contains("no jobs"));
    let fine = job("fine", 0, 1, 16);
    assert!(refusal(&[fine.clone(), job("j17", 0, 1, 17)], None).contains("job j17 requests 17"));
    assert!(refusal(&[job("zero", 0, 1, 0)], None).contains("job zero requests 0 GPUs"));
    let endless = BaselineJob { service_us: u64::MAX, num_gpu: 1, ..job("endless", 1, 1, 1) };
    assert!(refusal(std::slice::from_ref(&endless), None).contains("job endless: it would end"));
    let table = overheads("num_gpu,model,overhead_s\n").expect("a table without rows");
    assert!(
        refusal(std::slice::from_ref(&fine), Some(&table))
            .contains("job fine: the start-overhead table table.csv has no row")
    );
    let nameless = BaselineJob { model: None, ..fine };
    assert!(refusal(&[nameless], Some(&table)).contains("job fine has no model"));
    assert!(BaselineCluster::new(vec![0, 0]).is_err());
    assert!(BaselineCluster::new(vec![u32::MAX, 1]).is_err());
    assert!("fifo".parse::<BaselineOrder>().is_err());
    for order in BaselineOrder::ALL {
        assert_eq!(order.name().parse(), Ok(order));
    }
}

#[test]
fn overhead_tables_are_read_and_their_errors_say_where() {
    let table = overheads("model,overhead_s,num_gpu\nbert,10,4\na2c,7.5,4\n")
        .expect("columns in any order");
    assert_eq!(table.overhead_us(4, "bert"), Some(10_000_000));
    assert_eq!(table.overhead_us(4, "a2c"), Some(7_500_000));
    assert_eq!(table.overhead_us(8, "bert"), None);

    let header = "num_gpu,model,overhead_s\n";
    for (text, words) in [
        ("num_gpu,model\n", "table.csv:1: column `overhead_s`: is missing"),
        (
            "num_gpu,model,overhead_s,seconds\n",
            "table.csv:1: column `seconds`: is not a column of this table",
        ),
        ("num_gpu,num_gpu,model,overhead_s\n", "table.csv:1: column `num_gpu`: duplicate"),
        (&format!("{header}1,bert,7\nx,bert,7\n"), "table.csv:3: column `num_gpu`: `x`"),
        (&format!("{header}0,bert,7\n"), "table.csv:2: column `num_gpu`: `0`"),
        (&format!("{header}1,,7\n"), "table.csv:2: column `model`"),
        (&format!("{header}1,bert,-7\n"), "table.csv:2: column `overhead_s`: `-7`"),
        (&format!("{header}1,bert,1e\n"), "table.csv:2: column `overhead_s`: `1e`"),
        (&format!("{header}1,bert\n"), "table.csv:2: `1,bert` has 2 fields"),
        (
            &format!("{header}1,bert,7\n1,bert,7\n"),
            "table.csv:3: column `model`: `bert` is a duplicate of line 2 (GPUs: 1)",
        ),
    ] {
        let message = overheads(text).expect_err(text).to_string();
        assert!(message.contains(words), "{message} lacks {words}");
    }
    let missing = StartOverheads::open(std::path::Path::new("no/such/table.csv"));
    assert!(missing.expect_err("no file").to_string().contains("no/such/table.csv"));
}
