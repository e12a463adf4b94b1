package index

import (
	"slices"
	"testing"
)

// Of two tools with the same words, the one for many things does not answer for
// one, nor the other way round.
func TestNumber(t *testing.T) {
	for name, want := range map[string]number{
		"get_secret": numOne, "get_secrets": numMany, "secret_list": numMany, "findUser": numMany, "getStatus": numOne, "delete_files": numUnknown, "get_list": numMany, "": numUnknown,
	} {
		if got := numberOf(name); got != want {
			t.Errorf("numberOf(%q) = %d, want %d", name, got, want)
		}
	}
	servers, tools := corpus()
	x := fill(t, Options{}, servers, tools)
	place := func(q, id string) int {
		return slices.Index(ids(t, x, Query{Text: q, TopK: MaxTopK}), id)
	}
	for q, pair := range map[string][2]string{
		"Show me the secrets in the key vault <account>":                      {"azure-keyvault:keyvault_secret_list", "azure-keyvault:keyvault_secret_get"},
		"Show me the details of the secret <name> in the key vault <account>": {"azure-keyvault:keyvault_secret_get", "azure-keyvault:keyvault_secret_list"},
		"What certificates are in the key vault <account>?":                   {"azure-keyvault:keyvault_certificate_list", "azure-keyvault:keyvault_certificate_get"},
	} {
		if want, other := place(q, pair[0]), place(q, pair[1]); want < 0 || want > other {
			t.Errorf("%q: %s at %d, %s at %d", q, pair[0], want, pair[1], other)
		}
	}
}

func TestWeigh(t *testing.T) {
	x := officeIndex(t, Options{})
	for _, s := range Signals {
		without := map[Signal]float64{s: 0}
		if got := ids(t, x, Query{Text: "read the contents of a file", Weigh: without}); len(got) == 0 || got[0] != "files:read_file" {
			t.Errorf("without %s: %v", s, got)
		}
		if *tuned.weighed(without) == tuned {
			t.Errorf("leaving out %s changes nothing", s)
		}
	}
}
