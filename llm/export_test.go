package llm

// PriceTable is the built-in table, by kind of provider and model.
func PriceTable() map[string]map[string]TokenPrice { return prices().Prices }
