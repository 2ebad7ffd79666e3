//! Amounts of other currencies in USD, at rates that the user gives. Nobody else knows at which
//! rate a bill was paid.

use std::collections::BTreeMap;

use crate::day::is_calendar_day;
use crate::usd::decimal_pico;

/// Parts of one USD in a rate.
const PICO: i128 = 1_000_000_000_000;

/// No unit of any currency is worth more USD; a rate above it is upside down or in the wrong unit.
const MOST_USD_PER_UNIT: i128 = 1_000;

/// What one unit of other currencies is worth.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    rates: BTreeMap<String, ExchangeRate>,
}

/// USD for one unit of a currency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeRate {
    /// Code of the currency, such as `EUR`.
    pub currency: String,
    /// In 10⁻¹² USD, above 0.
    pub usd_pico: i128,
    /// Day of the rate as `YYYY-MM-DD`, where the user says one.
    pub as_of: Option<String>,
    /// Where it was written.
    pub source: String,
}

impl Exchange {
    /// Adds a rate: so many USD, such as `1.08`, for one unit of a currency, such as `EUR`. A later
    /// one replaces an earlier one. `source` says where it was written.
    ///
    /// # Errors
    /// A sentence that says what is no currency, no rate or no day, and how to write it.
    pub fn with(
        mut self,
        currency: &str,
        usd: &str,
        as_of: Option<&str>,
        source: &str,
    ) -> Result<Self, String> {
        if currency.len() != 3 || !currency.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return Err(format!(
                "`{currency}` is not a currency code; write three uppercase letters, such as EUR"
            ));
        }
        if currency == "USD" {
            return Err("amounts are already in USD; omit this rate".to_owned());
        }
        let bad = |why: &str| format!("`{usd}` {why}: write USD for one {currency}, such as 1.08");
        let usd_pico = decimal_pico(usd).ok_or_else(|| bad("is not an exchange rate"))?;
        match usd_pico {
            0 => return Err(bad("must be above 0")),
            usd_pico if usd_pico > MOST_USD_PER_UNIT * PICO => {
                return Err(bad("is above 1000"));
            }
            _ => {}
        }
        if let Some(day) = as_of.filter(|day| !is_calendar_day(day)) {
            return Err(format!("`{day}` is not a day: write it as YYYY-MM-DD"));
        }
        let rate = ExchangeRate {
            currency: currency.to_owned(),
            usd_pico,
            as_of: as_of.map(str::to_owned),
            source: source.to_owned(),
        };
        self.rates.insert(currency.to_owned(), rate);
        Ok(self)
    }

    /// The rate of a text such as `EUR=1.08` or `EUR=1.08@2026-11-20`, beside others.
    ///
    /// # Errors
    /// As [`Self::with`], and for a text of another form.
    pub fn with_text(self, text: &str, source: &str) -> Result<Self, String> {
        let (currency, rate) = text.split_once('=').ok_or_else(|| {
            format!(
                "`{text}` is not an exchange rate: write CURRENCY=RATE, where RATE is the price of \
                 one unit in USD, such as EUR=1.08"
            )
        })?;
        let (usd, as_of) = rate.split_once('@').map_or((rate, None), |(usd, day)| (usd, Some(day)));
        self.with(currency, usd, as_of, source)
    }

    /// The rate of a currency.
    ///
    /// # Errors
    /// Says how to give it.
    pub fn rate(&self, currency: &str) -> Result<&ExchangeRate, String> {
        self.rates.get(currency).ok_or_else(|| {
            format!(
                "`{currency}` has no exchange rate: pass --exchange {currency}=RATE, in USD for one {currency}, or use \
                 USD"
            )
        })
    }
}

impl ExchangeRate {
    /// An amount in millionths of the currency in micro-USD, half to even; `None` beyond what an
    /// `i64` holds.
    pub fn usd_micros(&self, micros: i64) -> Option<i64> {
        let product = i128::from(micros) * self.usd_pico;
        let (whole, rest) = (product.div_euclid(PICO), product.rem_euclid(PICO));
        let up = rest * 2 > PICO || rest * 2 == PICO && whole % 2 != 0;
        i64::try_from(whole + i128::from(up)).ok()
    }

    /// The rate in USD, with as many decimals as it has.
    pub fn usd(&self) -> String {
        let (whole, rest) = (self.usd_pico / PICO, self.usd_pico % PICO);
        let decimals = format!("{rest:012}");
        let decimals = decimals.trim_end_matches('0');
        format!("{whole}.{decimals:0<2}")
    }

    /// The rate in words, with where and when.
    pub fn in_words(&self) -> String {
        let day =
            self.as_of.as_deref().map_or("of an unknown date".to_owned(), |d| format!("of {d}"));
        format!("1 {} = {} USD, {day} ({})", self.currency, self.usd(), self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(currency: &str, usd: &str) -> Result<Exchange, String> {
        Exchange::default().with(currency, usd, None, "--exchange")
    }

    /// Worked by hand: €6.50 at 1.08 is $7.02; ¥151 at 0.0066225 is $0.9999975, of which the last
    /// half goes to the even micro-dollar 999,998.
    #[test]
    fn amounts_are_turned_to_the_micro_dollar() {
        let euro = one("EUR", "1.08").unwrap();
        assert_eq!(euro.rate("EUR").unwrap().usd_micros(6_500_000), Some(7_020_000));
        assert_eq!(euro.rate("EUR").unwrap().usd_micros(-6_500_000), Some(-7_020_000));
        let yen = one("JPY", "0.0066225").unwrap();
        let yen = yen.rate("JPY").unwrap();
        assert_eq!(yen.usd_micros(151_000_000), Some(999_998));
        assert_eq!(yen.usd(), "0.0066225");
        let dear = one("KWD", "1000").unwrap();
        assert_eq!(dear.rate("KWD").unwrap().usd_micros(i64::MAX), None);
        assert_eq!(dear.rate("KWD").unwrap().usd(), "1000.00");
    }

    #[test]
    fn what_is_no_rate_is_refused_with_what_to_write() {
        for (currency, usd, told) in [
            (
                "eur",
                "1.08",
                "`eur` is not a currency code; write three uppercase letters, such as EUR",
            ),
            ("EURO", "1", "`EURO` is not a currency code"),
            ("USD", "1", "amounts are already in USD"),
            ("EUR", "0", "`0` must be above 0"),
            ("EUR", "0.0000000000001", "`0.0000000000001` is not an exchange rate"),
            ("EUR", "1,08", "write USD for one EUR, such as 1.08"),
            ("EUR", "-1", "`-1` is not an exchange rate"),
            ("EUR", "1000.1", "`1000.1` is above 1000"),
        ] {
            let error = one(currency, usd).unwrap_err();
            assert!(error.contains(told), "{currency}={usd}: {error}");
        }
        let day = Exchange::default().with("EUR", "1", Some("2026-02-30"), "x").unwrap_err();
        assert!(day.contains("`2026-02-30` is not a day"), "{day}");
        let form = Exchange::default().with_text("1.08", "x").unwrap_err();
        assert!(form.contains("such as EUR=1.08"), "{form}");
        let dated = Exchange::default().with_text("EUR=1.08@2026-11-01", "--exchange").unwrap();
        let words = dated.rate("EUR").unwrap().in_words();
        assert_eq!(words, "1 EUR = 1.08 USD, of 2026-11-01 (--exchange)");
        let none = Exchange::default().rate("GBP").unwrap_err();
        assert!(none.contains("--exchange GBP=RATE, in USD for one GBP"), "{none}");
    }
}
