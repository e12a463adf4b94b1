package record

import "nize/store/kv"

// PruneHomes deletes what earlier versions stored about open App Homes. The bucket remains,
// so that such a version still works after a downgrade.
func PruneHomes(tx kv.Tx) (n int, err error) {
	var keys [][]byte
	err = tx.Each("homes", nil, nil, func(k, _ []byte) error {
		keys = append(keys, append([]byte(nil), k...))
		return nil
	})
	for _, k := range keys {
		if err == nil {
			err, n = tx.Delete("homes", k), n+1
		}
	}
	return n, err
}
