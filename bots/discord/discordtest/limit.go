package discordtest

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"strconv"
	"time"

	"nize/bots/chattest"
)

// bucket counts calls against their rate.
type bucket struct {
	rate
	left  int
	reset time.Time
}

type rate struct {
	limit  int
	window time.Duration
}

// takeLocked counts a call and reports whether it is within the rate; s.Mu must be held.
func (b *bucket) takeLocked(now time.Time) bool {
	if !now.Before(b.reset) {
		b.left, b.reset = b.limit, now.Add(b.window)
	}
	ok := b.left > 0
	b.left = max(b.left-1, 0)
	return ok
}

func (s *Server) bucketLocked(key string, r rate) *bucket {
	if s.buckets[key] == nil {
		s.buckets[key] = &bucket{rate: r}
	}
	return s.buckets[key]
}

// rates are the limits per route and channel, guild or webhook; Discord announces them only
// in headers.
var rates = map[string]rate{
	"message.create": {5, 5 * time.Second},
	"message.edit":   {5, 5 * time.Second},
	"message.delete": {5, time.Second},
	"message.list":   {5, 5 * time.Second},
	"thread.create":  {50, 5 * time.Minute},
	"typing":         {5, 5 * time.Second},
	"webhook":        {5, 2 * time.Second},
	"commands.put":   {2, 4 * time.Second},
	"channel.dm":     {10, 10 * time.Second},
	"member.get":     {5, time.Second},
	global:           {globalBurst, time.Second},
}

const global = "global"

// unbound are the methods that the global limit doesn't apply to.
var unbound = map[string]bool{"webhook": true, "interaction.callback": true}

// limitLocked counts a request and sets Discord's headers; it returns an error if the
// request came too early.
func (s *Server) limitLocked(h http.Header, name, key string) error {
	now := s.opt.Now()
	if s.opt.Unlimited || name == "interaction.callback" {
		return nil
	}
	if all := s.bucketLocked(global, rates[global]); !unbound[name] && !all.takeLocked(now) {
		return s.limitedLocked(global, all.reset.Sub(now))
	}
	r, known := rates[name]
	if !known {
		r = rate{50, time.Second}
	}
	b := s.bucketLocked(key, r)
	ok := b.takeLocked(now)
	id := fnv.New64a()
	_, _ = id.Write([]byte(name)) // a hash never fails
	h.Set("X-RateLimit-Bucket", fmt.Sprintf("%x", id.Sum64()))
	h.Set("X-RateLimit-Limit", strconv.Itoa(b.limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(b.left))
	h.Set("X-RateLimit-Reset", fmt.Sprintf("%.3f", float64(b.reset.UnixMilli())/1000))
	h.Set("X-RateLimit-Reset-After", fmt.Sprintf("%.3f", b.reset.Sub(now).Seconds()))
	if !ok {
		return s.limitedLocked(key, b.reset.Sub(now))
	}
	return nil
}

// limited is returned if a bucket's limit is reached.
type limited struct {
	Message    string  `json:"message"`
	RetryAfter float64 `json:"retry_after"`
	Global     bool    `json:"global"`
}

func (l *limited) Error() string { return l.Message }

func (l *limited) Unwrap() error { return chattest.ErrLimited }

func (s *Server) limitedLocked(key string, after time.Duration) error {
	s.LimitLocked(key, s.opt.Now(), after)
	return &limited{Message: "You are being rate limited.", RetryAfter: after.Seconds(), Global: key == global}
}

func (l *limited) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Retry-After", fmt.Sprint(math.Ceil(l.RetryAfter)))
	h.Set("X-RateLimit-Reset-After", fmt.Sprintf("%.3f", l.RetryAfter))
	h.Set("X-RateLimit-Scope", "user")
	if l.Global {
		h.Set("X-RateLimit-Global", "true")
		h.Set("X-RateLimit-Scope", global)
	}
	chattest.WriteJSON(w, http.StatusTooManyRequests, l)
}

// faultForm writes the faults in Discord's own form.
func (s *Server) faultForm(w http.ResponseWriter, key string) func(*chattest.Fault) bool {
	return func(f *chattest.Fault) bool {
		switch {
		case f.RetryAfter > 0:
			if f.Error == global {
				key = global
			}
			s.Mu.Lock()
			err := s.limitedLocked(key, f.RetryAfter)
			s.Mu.Unlock()
			write(w, nil, err)
		case f.Status != 0 && f.Error != "":
			code, _ := strconv.Atoi(f.Error) // an invalid code is 0
			write(w, nil, refuse(f.Status, code, "on request"))
		default:
			return false
		}
		return true
	}
}

// write responds to a call.
func write(w http.ResponseWriter, answer any, err error) {
	var p *problem
	var l *limited
	switch {
	case errors.As(err, &l):
		l.write(w)
	case errors.As(err, &p):
		chattest.WriteJSON(w, p.status, p)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case answer == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		chattest.WriteJSON(w, http.StatusOK, answer)
	}
}
