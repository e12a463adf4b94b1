package postgres

const (
	// mostKnown bounds, twice over, how many bytes are known.
	mostKnown = 2 << 20
	// largeValue is what is asked for again rather than known.
	largeValue = 16 << 10
)

// known is what a writer need not ask for: what those before it that were committed
// read or put. It is what the database has, since no commit is made where there was
// another since this engine's last. What was of no use for a while is forgotten. One
// writer at a time uses it.
type known struct {
	read       map[string]bool // the buckets in which writers ask for keys
	young, old map[place]put
	size       int  // of the young
	doubt      bool // a key was there that had been said to be new
}

func (k *known) find(at place) (p put, ok bool) {
	if p, ok = k.young[at]; ok {
		return p, true
	}
	if p, ok = k.old[at]; ok {
		k.keep(at, p)
	}
	return p, ok
}

func (k *known) keep(at place, p put) {
	delete(k.old, at)
	if k.size > mostKnown {
		k.young, k.old, k.size = nil, k.young, 0
	}
	if k.young == nil {
		k.young = map[place]put{}
	}
	k.young[at] = p
	k.size += p.size(at)
}

func (k *known) forget() { k.young, k.old, k.size = nil, nil, 0 }

// asks notes that writers ask for keys of a bucket.
func (k *known) asks(bucket string) {
	if k.read == nil {
		k.read = map[string]bool{}
	}
	k.read[bucket] = true
}

// find finds what a writer need not ask for.
func (t *transaction) find(at place) (p put, ok bool) {
	if p, ok = t.puts[at]; ok {
		return p, true
	}
	if p, ok = t.news[at]; !ok && !t.plain && t.e.Current() {
		p, ok = t.e.known.find(at)
	}
	return p, ok && !p.large
}

// note notes what is known once the transaction is committed.
func (t *transaction) note(at place, p put) {
	if t.plain || !t.e.known.read[at.bucket] {
		return
	}
	if len(p.value) > largeValue {
		p = put{large: true}
	}
	t.news[at] = p
	if t.noted += p.size(at); t.noted > mostKnown {
		t.plain, t.news = true, nil
		t.e.known.forget()
	}
}

// New implements [kv.Transaction]: the server finds out where the key is put.
func (t *transaction) New(bucket string, key []byte) (bool, error) {
	at := place{bucket, string(key)}
	if t.write && t.err == nil && !t.e.known.doubt {
		if _, ok := t.find(at); !ok {
			t.e.known.asks(bucket)
			t.fresh[at] = true
			return true, nil
		}
	}
	v, err := t.Get(bucket, key)
	return v == nil, err
}
