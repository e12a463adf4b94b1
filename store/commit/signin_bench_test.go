package commit_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"nize/store"
	"nize/store/database"
	"nize/store/oauth"
)

// families is a database with 1,000 clients, 100 people and 10,000 families.
type families struct {
	*database.DB
	people []string
	off    atomic.Int64
	made   atomic.Int64
}

func newFamilies(b *testing.B, n int) *families {
	f := &families{}
	f.DB = openTest(b, b.TempDir(), database.Options{Now: func() time.Time { return time.Now().Add(time.Duration(f.off.Load())) }})
	for i := range 100 {
		u, err := f.EnsureUser(b.Context(), fmt.Sprintf("local:%d", i), fmt.Sprintf("p%d", i), store.Member)
		if err != nil {
			b.Fatal(err)
		}
		f.people = append(f.people, u.ID)
	}
	for i := range oauth.MaxClients {
		if err := f.PutClient(b.Context(), store.System, oauth.Client{ID: fmt.Sprintf("c_%d", i), Name: "C", Redirects: []string{"http://localhost/cb"}}); err != nil {
			b.Fatal(err)
		}
	}
	var workers sync.WaitGroup
	for range 4 { // they share commits; more would let codes end
		workers.Go(func() {
			for f.made.Load() < int64(n) {
				f.signIn(b)
			}
		})
	}
	workers.Wait()
	return f
}

// signIn is what the database does from a client's question to its tokens; the
// nth family's secrets are named by n.
func (f *families) signIn(b *testing.B) {
	n := int(f.made.Add(1) - 1)
	f.off.Add(int64(10 * time.Second)) // so that those who ask are no flood
	name := fmt.Sprint(n)
	err := f.AddRequest(b.Context(), store.System, oauth.Request{ID: "r" + name, Client: "c_" + fmt.Sprint(n%oauth.MaxClients), Name: "C", Redirect: "http://localhost/cb", Code: oauth.HashOf("code" + name), Address: fmt.Sprint(n % 50)})
	if err == nil {
		_, err = f.ChangeRequest(b.Context(), store.System, "r"+name, "signin.number", func(r *oauth.Request, now time.Time, _ func(string) int) (bool, error) {
			r.Ended, r.Granted, r.User, r.Grant = oauth.Allowed, now, f.people[n%len(f.people)], oauth.HashOf("grant"+name)
			return true, nil
		})
	}
	if err == nil {
		_, err = f.Redeem(b.Context(), oauth.Redeeming{Code: oauth.HashOf("grant" + name), Check: func(oauth.Request) error { return nil }, Family: oauth.HashOf("family" + name), Life: 365 * 24 * time.Hour,
			Token: store.Token{ID: store.NewID(f.Now()), Name: "oauth:c", Hash: oauth.HashOf("token" + name), Audience: store.ForMCP}, Next: oauth.Pair{Access: oauth.HashOf("access" + name), Refresh: oauth.HashOf("refresh" + name)}})
	}
	if err != nil {
		b.Error(err)
	}
}

// cpu reports the process's CPU time of each round.
func cpu(b *testing.B, do func(n int)) {
	used := func() time.Duration {
		var r syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
			b.Fatal(err)
		}
		return time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	n, before := 0, used()
	for b.Loop() {
		do(n)
		n++
	}
	b.ReportMetric(float64(used()-before)/float64(b.N)/1e6, "cpu-ms/op")
}

// BenchmarkSignIns is what signing in costs with 10,000 families and 1,000 clients.
func BenchmarkSignIns(b *testing.B) {
	f := newFamilies(b, 10_000)
	b.Run("sign-in", func(b *testing.B) { cpu(b, func(int) { f.signIn(b) }) })
	b.Run("refresh", func(b *testing.B) {
		given := map[int]string{}
		cpu(b, func(n int) {
			n %= 10_000
			had := given[n]
			if had == "" {
				had = fmt.Sprintf("refresh%d", n)
			}
			next := fmt.Sprintf("next%d of %s", n, had)
			if len(next) > 100 {
				next = fmt.Sprintf("next%d", n)
			}
			given[n] = next
			_, err := f.Refresh(b.Context(), oauth.Refreshing{Family: oauth.HashOf(fmt.Sprint("family", n)), Given: oauth.HashOf(had), Client: fmt.Sprint("c_", n%oauth.MaxClients), Next: oauth.Pair{Access: oauth.HashOf("a" + next), Refresh: oauth.HashOf(next)},
				Life: time.Hour, Grace: time.Minute, Admit: func() bool { return true }})
			if err != nil {
				b.Fatal(n, err)
			}
		})
	})
	_, middle, err := f.PageTokens(b.Context(), oauth.TokenQuery{Limit: 500})
	if err != nil {
		b.Fatal(err)
	}
	for name, q := range map[string]oauth.TokenQuery{"of a person": {User: f.people[5]}, "of all": {}, "of all, a later": {Before: middle}, "of all browsers": {Kinds: []string{oauth.Browser}}} {
		q.Limit = 50
		b.Run("page "+name, func(b *testing.B) {
			cpu(b, func(int) {
				if list, _, err := f.PageTokens(b.Context(), q); err != nil || len(list) != 50 && q.Kinds == nil {
					b.Fatal(len(list), err)
				}
			})
		})
	}
}

// BenchmarkBearer is the check of an access token that a client got by signing in,
// beside that of a token that somebody made.
func BenchmarkBearer(b *testing.B) {
	f := newFamilies(b, 1000)
	made := store.Token{Name: "made", User: f.people[0], Hash: oauth.HashOf("made"), Audience: "mcp", Expires: f.Now().Add(time.Hour)}
	if _, err := f.CreateToken(b.Context(), tester, made, false); err != nil {
		b.Fatal(err)
	}
	for name, hash := range map[string][32]byte{"a token": made.Hash, "an access token": oauth.HashOf("access500")} {
		for how, forget := range map[string]bool{"seen": false, "unseen": true} {
			b.Run(name+"/"+how, func(b *testing.B) {
				for b.Loop() {
					if forget {
						f.Forget()
					}
					if _, _, err := f.Authenticate(context.Background(), hash); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
