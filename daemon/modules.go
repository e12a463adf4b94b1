package daemon

import (
	"nize/daemon/module"
	"nize/store/kv"
)

// modules lists the capabilities that are modules, in the order in which they start.
func (o *operations) modules() []module.Module {
	return []module.Module{
		o.documents.Module(),
	}
}

// Buckets returns the buckets of all modules, which are beside those of the store.
func Buckets() (list []kv.Bucket) {
	for _, m := range new(operations).modules() {
		list = append(list, m.Buckets...)
	}
	return list
}
