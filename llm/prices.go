package llm

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// TokenPrice is the price of a model in US dollars per million tokens.
type TokenPrice struct {
	In     float64     `json:"in"`
	Cached float64     `json:"cached"`
	Out    float64     `json:"out"`
	Above  *PriceAbove `json:"above,omitempty"`
}

// PriceAbove is the price of a call whose prompt exceeds a number of tokens.
type PriceAbove struct {
	Tokens int64   `json:"tokens"`
	In     float64 `json:"in"`
	Cached float64 `json:"cached"`
	Out    float64 `json:"out"`
}

// pricesJSON has the prices published by providers, with their date, sources and gaps. A
// model that is missing counts as unknown, never as free.
//
//go:embed prices.json
var pricesJSON []byte

type priceTable struct {
	AsOf       string                           `json:"as_of"`
	AsOfKind   map[string]string                `json:"as_of_kind"` // dates of kinds that were read later
	Unit       string                           `json:"unit"`
	Sources    []string                         `json:"sources"`
	Exceptions []string                         `json:"exceptions"`
	Prices     map[string]map[string]TokenPrice `json:"prices"` // keyed by kind of provider and model
}

// prices is decoded when the first price is needed.
var prices = sync.OnceValue(func() priceTable {
	var t priceTable
	d := json.NewDecoder(bytes.NewReader(pricesJSON))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		panic(fmt.Sprintf("prices.json: %v", err)) // the file is embedded and tested
	}
	return t
})

// PricesAsOf returns the month of the built-in prices of a kind of provider.
func PricesAsOf(kind string) string { return cmp.Or(prices().AsOfKind[kind], prices().AsOf) }

// dated matches the release date at the end of a model's name.
var dated = regexp.MustCompile(`-\d{4}-?\d{2}-?\d{2}$`)

// IsFree reports whether models of that kind of provider run on one's own machine and cost
// nothing.
func IsFree(kind string) bool { return kind == Offline || kind == "ollama" }

// PricesOf reports whether the table has prices for that kind of provider.
func PricesOf(kind string) bool {
	_, ok := prices().Prices[kind]
	return ok || kind == "azure"
}

// TablePrice returns the built-in price of a model, by the provider's own name and its
// kind. A release without its own price costs what its model does, and an Azure deployment
// what the model with its name does.
func TablePrice(kind, model string) (TokenPrice, bool) {
	if kind == "azure" {
		kind = "openai"
	}
	model = strings.ToLower(model)
	of := prices().Prices[kind]
	if p, ok := of[model]; ok {
		return p, true
	}
	p, ok := of[dated.ReplaceAllString(model, "")]
	return p, ok
}

// Cost returns the price of u in millionths of a dollar.
func (p TokenPrice) Cost(u Usage) int64 {
	in, cached, out := p.In, p.Cached, p.Out
	if p.Above != nil && u.Prompt > p.Above.Tokens {
		in, cached, out = p.Above.In, p.Above.Cached, p.Above.Out
	}
	hit := min(max(u.Cached, 0), u.Prompt)
	return int64(float64(u.Prompt-hit)*in + float64(hit)*cached + float64(u.Completion)*out + 0.5)
}
