package discordtest

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"nize/bots/chattest"
)

// bucket is what a route and its channel, guild or webhook allow.
type bucket struct {
	limit, left int
	window      time.Duration
	reset       time.Time
}

// Limit is a 429 that was answered.
type Limit struct {
	Bucket  string // a method and its channel, guild or webhook; "global"
	At      time.Time
	For     time.Duration
	Ignored int // requests that came nevertheless before it was over
}

// underWay is how long before a global limit was told requests may have been sent
// that come after it. Those of one bucket are one after the other.
const underWay = 300 * time.Millisecond

const global = "global"

// arriveLocked counts a request against the limits that Discord told before.
func (s *Server) arriveLocked(name, major string) {
	now := s.opt.Now()
	for i := range s.stats.Limits {
		l := &s.stats.Limits[i]
		after := now.Sub(l.At)
		mine := l.Bucket == name+":"+major || l.Bucket == global && name != "webhook" && name != "interaction.callback" && after > underWay
		if mine && after < l.For {
			l.Ignored++
		}
	}
}

// rate is what a route allows; Discord tells it in headers alone.
type rate struct {
	limit  int
	window time.Duration
}

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
}

// limit counts a request, writes Discord's headers, and says whether it goes on.
func (s *Server) limit(w http.ResponseWriter, name, major string) bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	now := s.opt.Now()
	if s.opt.Unlimited || name == "interaction.callback" {
		return true
	}
	if all := s.bucketLocked(global, rate{s.opt.GlobalBurst, time.Second}); name != "webhook" && !all.takeLocked(now) {
		s.refuseLocked(w, global, all.reset.Sub(now))
		return false
	}
	r, ok := rates[name]
	if !ok {
		r = rate{50, time.Second}
	}
	b := s.bucketLocked(name+":"+major, r)
	ok = b.takeLocked(now)
	h := w.Header()
	h.Set("X-RateLimit-Bucket", strconv.FormatUint(hash(name), 16))
	h.Set("X-RateLimit-Limit", strconv.Itoa(b.limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(b.left))
	h.Set("X-RateLimit-Reset", strconv.FormatFloat(float64(b.reset.UnixMilli())/1000, 'f', 3, 64))
	h.Set("X-RateLimit-Reset-After", seconds(b.reset.Sub(now)))
	if !ok {
		s.refuseLocked(w, name+":"+major, b.reset.Sub(now))
	}
	return ok
}

func (s *Server) bucketLocked(key string, r rate) *bucket {
	b := s.buckets[key]
	if b == nil {
		b = &bucket{limit: r.limit, window: r.window}
		s.buckets[key] = b
	}
	return b
}

func (b *bucket) takeLocked(now time.Time) bool {
	if !now.Before(b.reset) {
		b.left, b.reset = b.limit, now.Add(b.window)
	}
	if b.left == 0 {
		return false
	}
	b.left--
	return true
}

// refuseLocked answers that a bucket is to wait.
func (s *Server) refuseLocked(w http.ResponseWriter, bucket string, after time.Duration) {
	s.stats.Limits = append(s.stats.Limits, Limit{Bucket: bucket, At: s.opt.Now(), For: after})
	s.stats.Invalid++
	writeLimited(w, after, bucket == global)
	s.TouchLocked()
}

type limited struct {
	Message    string  `json:"message"`
	RetryAfter float64 `json:"retry_after"`
	Global     bool    `json:"global"`
}

func writeLimited(w http.ResponseWriter, after time.Duration, all bool) {
	h := w.Header()
	h.Set("Retry-After", strconv.Itoa(int((after+time.Second-1)/time.Second)))
	h.Set("X-RateLimit-Reset-After", seconds(after))
	h.Set("X-RateLimit-Scope", "user")
	if all {
		h.Set("X-RateLimit-Global", "true")
		h.Set("X-RateLimit-Scope", "global")
	}
	writeJSON(w, http.StatusTooManyRequests, limited{Message: "You are being rate limited.", RetryAfter: after.Seconds(), Global: all})
}

func seconds(d time.Duration) string { return strconv.FormatFloat(max(d, 0).Seconds(), 'f', 3, 64) }

func hash(s string) uint64 { // FNV-1a
	h := uint64(14695981039346656037)
	for _, c := range []byte(s) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

// writeFault answers in the method's stead; false means that the fault was a
// delay only.
func (s *Server) writeFault(w http.ResponseWriter, f *chattest.Fault, bucket string) bool {
	switch {
	case f.RetryAfter > 0:
		if f.Error == global {
			bucket = global
		}
		s.Mu.Lock()
		defer s.Mu.Unlock()
		s.refuseLocked(w, bucket, f.RetryAfter)
	case f.Status != 0 && f.Error != "":
		code, _ := strconv.Atoi(f.Error)
		writeJSON(w, f.Status, refuse(f.Status, code, "on request"))
	case f.Status != 0:
		http.Error(w, http.StatusText(f.Status), f.Status)
	case f.Body != "":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(f.Body)) // the client is gone
	default:
		return false
	}
	return true
}

// Refusal is a call that was answered with an error.
type Refusal struct {
	Method string
	Status int
	Code   int
	Why    string
}

// Stats count what the bot did, above all what it did wrong without noticing.
type Stats struct {
	Calls      map[string]int // by method, failed ones too
	Refused    []Refusal      // by the fake's rules, not by faults
	Limits     []Limit        // each answer with 429, and whether it was obeyed
	Ignored    int            // requests that came although a 429 had said to wait
	Invalid    int            // 401, 403 and 429; 10,000 in ten minutes get an address banned
	Unknown    []string       // paths that Discord, or this fake, does not have
	Links      int            // connections open now
	Opened     int            // connections ever
	Identified int
	Resumed    int
	Sent       int   // events
	Silent     int   // connections without heartbeats
	Closed     []int // codes with which connections were closed
	Missed     int   // interactions that were not answered in time
	MaxAnswer  time.Duration
}

// Stats are the counts up to now.
func (s *Server) Stats() Stats {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	out := s.stats
	out.Calls = maps.Clone(out.Calls)
	out.Refused = slices.Clone(out.Refused)
	out.Unknown = slices.Clone(out.Unknown)
	out.Limits = slices.Clone(out.Limits)
	for _, l := range out.Limits {
		out.Ignored += l.Ignored
	}
	out.Closed = slices.Clone(out.Closed)
	out.Links = s.openLocked()
	return out
}
