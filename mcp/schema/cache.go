package schema

import (
	"container/list"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sync"

	"nize/store"
)

// defaultMax is the default number of cached schemas: those of the tools in use, at about
// 20 KB each.
const defaultMax = 2048

// Cache caches compiled schemas by the tool's pin. The zero value is ready for use and safe
// for concurrent use. The error of a schema that doesn't compile is cached, too, so that
// compiling it costs time only once.
type Cache struct {
	Max int // number of cached schemas, 2048 if 0; the least recently used is evicted first

	mu      sync.Mutex // guards the two fields below
	entries map[string]*list.Element
	order   list.List // of *entry, most recently used first
}

type entry struct {
	key  string
	once sync.Once
	v    *Validator
	err  error
}

// Get returns the tool's validator. Its errors wrap [ErrUnchecked].
func (c *Cache) Get(tool store.Tool) (*Validator, error) {
	e := c.entry(tool)
	e.once.Do(func() { e.v, e.err = Compile(tool.InputSchema) }) // outside the lock, so that others don't wait
	return e.v, e.err
}

// Check is [Validator.Check] with the tool's schema. The message names the tool: "arguments
// don't fit toolbox:convert_time: /to is required (string: target IANA zone)".
func (c *Cache) Check(tool store.Tool, args json.RawMessage) error {
	v, err := c.Get(tool)
	if err != nil {
		return err
	}
	return v.check(tool.ID(), args)
}

// Len returns the number of cached schemas.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.Len()
}

func (c *Cache) entry(tool store.Tool) *entry {
	key := tool.Pin
	if key == "" { // one of nize's own tools, which have no pin
		sum := sha256.Sum256(tool.InputSchema)
		key = "schema " + hex.EncodeToString(sum[:])
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if el := c.entries[key]; el != nil {
		c.order.MoveToFront(el)
		return el.Value.(*entry)
	}
	if c.entries == nil {
		c.entries = map[string]*list.Element{}
	}
	e := &entry{key: key}
	c.entries[key] = c.order.PushFront(e)
	limit := c.Max
	if limit <= 0 {
		limit = defaultMax
	}
	for c.order.Len() > limit {
		oldest := c.order.Back()
		delete(c.entries, oldest.Value.(*entry).key)
		c.order.Remove(oldest)
	}
	return e
}

// Properties returns the names of the arguments that the tool's schema declares, in any of
// its alternatives, or nil if it declares none or can't be read.
func (c *Cache) Properties(tool store.Tool) []string {
	v, err := c.Get(tool)
	if err != nil {
		return nil
	}
	return v.properties()
}

// TakesOthers reports whether the tool's schema explicitly allows properties that it
// doesn't declare. It returns false if the schema doesn't mention them.
func (c *Cache) TakesOthers(tool store.Tool) bool {
	v, err := c.Get(tool)
	return err != nil || v.takesOthers()
}

// TakesNothing reports whether the tool's schema allows no property at all.
func (c *Cache) TakesNothing(tool store.Tool) bool {
	v, err := c.Get(tool)
	return err == nil && len(v.properties()) == 0 && v.root.AdditionalProperties == false
}
