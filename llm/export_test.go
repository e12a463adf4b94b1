package llm

import "context"

// PriceTable returns the built-in table, keyed by kind of provider and model.
func PriceTable() map[string]map[string]TokenPrice { return prices().Prices }

// WriteWaiting writes the queued titles.
func (t *Titles) WriteWaiting(ctx context.Context) error {
	for {
		select {
		case thread := <-t.waiting:
			if err := t.write(ctx, thread); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}
