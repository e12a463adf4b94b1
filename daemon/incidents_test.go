package daemon

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"nize/daemon/alert"
	"nize/daemon/api"
	"nize/daemon/backup"
	"nize/daemon/doctor"
	"nize/mcp/mcptest"
	"nize/mcp/upstream"
	"nize/store"
	"nize/store/database"
)

// A child that is killed and can't start again is down after five minutes; it
// is over when it is well for one.
func TestKilledChildIsTold(t *testing.T) {
	t.Parallel()
	w := watch(t, t.TempDir(), nil)
	box := filepath.Join(t.TempDir(), "nize-toolbox")
	if err := os.Symlink(BuildToolbox(t), box); err != nil {
		t.Fatal(err)
	}
	w.register(boss, store.Server{Name: "box", Transport: store.Stdio, Command: box})
	w.want(w.see(0))
	if err := os.Rename(box, box+".away"); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(w.ops.servers.States()["box"].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.until("the server is down", func() bool { return w.state("box") == upstream.Down })
	w.want(w.see(0))
	w.want(w.see(5*time.Minute), "open server.down box")
	w.want(w.see(time.Hour), "open server.down box")
	if i := w.all()[0]; i.Cure != "nizectl servers test box" || !strings.Contains(i.Title.String(), "box is down") {
		t.Errorf("%+v", i)
	}
	if err := os.Rename(box+".away", box); err != nil {
		t.Fatal(err)
	}
	if err := w.pool.Restart(t.Context(), "box"); err != nil {
		t.Fatal(err)
	}
	w.want(w.see(0), "open server.down box")
	w.want(w.see(time.Minute), "recovered server.down box")
}

// A server that an admin disables is no longer down, nor is one that is gone.
func TestDisabledServerIsNotDown(t *testing.T) {
	t.Parallel()
	w := watch(t, t.TempDir(), nil)
	for _, name := range []string{"one", "two"} {
		s, err := w.db.PutServer(t.Context(), boss, store.Server{Name: name, Transport: store.HTTP, URL: "http://127.0.0.1:1/mcp"}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.pool.Sync(t.Context(), boss, s.Name); err == nil {
			t.Fatal("it answers")
		}
	}
	w.see(0)
	w.want(w.see(6*time.Minute), "open server.down one", "open server.down two")
	s, err := w.db.GetServer(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	s.Disabled = true
	if _, err := w.db.PutServer(t.Context(), boss, s, s.Revision); err != nil {
		t.Fatal(err)
	}
	if err := w.db.DeleteServer(t.Context(), boss, "two"); err != nil {
		t.Fatal(err)
	}
	w.see(0)
	w.want(w.see(time.Minute), "recovered server.down one", "recovered server.down two")
}

func TestLostLoginIsTold(t *testing.T) {
	t.Parallel()
	w := watch(t, t.TempDir(), nil)
	m := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "echo"}}, Fault: mcptest.Unauthorized})
	m.SetFault("", 0)
	if err := w.db.PutCredential(t.Context(), boss, store.Credential{CredentialKey: store.CredentialKey{Scope: "system", Service: "far", Name: "TOKEN"}, Secret: store.NewSecret("s3cret-value")}); err != nil {
		t.Fatal(err)
	}
	w.register(boss, store.Server{Name: "far", Transport: store.HTTP, URL: m.HTTP(), Headers: map[string]store.Value{"Authorization": {SecretKey: "TOKEN"}}})
	m.SetFault(mcptest.Unauthorized, -1)
	if err := w.pool.Restart(t.Context(), "far"); err == nil {
		t.Fatal("it answers")
	}
	w.until("the login is lost", func() bool { return len(w.ops.servers.States()["far"].LoginLost) == 1 })
	w.see(0)
	w.want(w.see(10*time.Minute), "open login.lost far")
	i := w.all()[0]
	if i.Cure != "nizectl credentials set far TOKEN" || strings.Contains(fmt.Sprint(i), "s3cret") {
		t.Errorf("%+v", i)
	}
	m.SetFault("", 0)
	if err := w.pool.Restart(t.Context(), "far"); err != nil {
		t.Fatal(err)
	}
	w.see(0)
	w.want(w.see(time.Minute), "recovered login.lost far")
}

// Tools are told one by one, up to five of a server, and those that were told
// stay told when more come.
func TestHeldToolsAreTold(t *testing.T) {
	t.Parallel()
	w := watch(t, t.TempDir(), nil)
	m := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "f"}, {Name: "g"}}})
	w.register(boss, store.Server{Name: "far", Transport: store.HTTP, URL: m.HTTP()})
	w.want(w.see(0))
	m.SetTool(mcptest.Tool{Name: "g", Description: "now it does something else"})
	if _, err := w.pool.Sync(t.Context(), store.System, "far"); err != nil {
		t.Fatal(err)
	}
	w.want(w.see(0), "open tool.held far:g")
	if i := w.all()[0]; i.Cure != "nizectl servers trust far g" || !strings.Contains(i.Text.String(), "differs from the accepted one") {
		t.Errorf("%+v", i)
	}
	for _, name := range []string{"a", "b", "c", "d", "e", "h"} { // most stand before g
		m.SetTool(mcptest.Tool{Name: name})
	}
	if _, err := w.pool.Sync(t.Context(), store.System, "far"); err != nil {
		t.Fatal(err)
	}
	want := []string{"open tool.held far:*", "open tool.held far:a", "open tool.held far:b", "open tool.held far:c", "open tool.held far:d", "open tool.held far:g"}
	w.want(w.see(0), want...)
	w.want(w.see(time.Hour), want...)
	tools, err := w.db.ListTools(t.Context(), "far")
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools {
		if err := w.db.AcceptTool(t.Context(), boss, tool.ID(), tool.Pin); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.pool.Sync(t.Context(), store.System, "far"); err != nil {
		t.Fatal(err)
	}
	w.see(0)
	for _, line := range w.see(time.Minute) {
		if !strings.HasPrefix(line, "recovered ") {
			t.Errorf("after all were accepted: %s", line)
		}
	}
}

func TestExpiringTokenIsTold(t *testing.T) {
	t.Parallel()
	w := watch(t, t.TempDir(), nil)
	ctx := t.Context()
	mia, err := w.db.AddUser(ctx, boss, store.User{Name: "mia", Role: store.Member, Identities: []string{"named:mia"}})
	if err != nil {
		t.Fatal(err)
	}
	now := w.now()
	for name, life := range map[string]time.Duration{"laptop": 90 * 24 * time.Hour, "ci": 6 * 24 * time.Hour} {
		_, made := store.NewToken(now)
		if _, err := w.db.CreateToken(ctx, boss, store.Token{ID: made.ID, Name: name, User: mia.ID, Prefix: made.Prefix, Hash: made.Hash, Audience: "mcp", Created: now, Expires: now.Add(life)}, false); err != nil {
			t.Fatal(err)
		}
	}
	w.want(w.see(0)) // a token that was made for six days is no news
	w.want(w.see(82 * 24 * time.Hour))
	got := w.see(2 * 24 * time.Hour)
	if len(got) != 1 || !strings.HasPrefix(got[0], "open token.expiring ") {
		t.Fatalf("got %v", got)
	}
	i := w.all()[0]
	if i.Cure != "nizectl tokens rotate laptop --user mia --grace 10m" || !slices.Equal(i.Users, []string{mia.ID}) {
		t.Errorf("%+v", i)
	}
	// The owner learns of it, and nobody else who is no admin.
	for who, n := range map[string]int{mia.ID: 1, "zoe": 0} {
		list, err := w.ops.alerts.List(ctx, store.Caller{User: who, Role: store.Member}, api.ListAlertsRequest{})
		if err != nil || len(list.Items) != n {
			t.Errorf("%s sees %+v, %v", who, list, err)
		}
	}
	_, next := store.NewToken(w.now())
	if _, err := w.db.RotateToken(ctx, boss, store.Rotation{User: mia.ID, Name: "laptop", Next: next, Grace: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if got := w.see(2 * time.Minute); !strings.HasPrefix(got[0], "recovered ") || len(got) != 1 {
		t.Errorf("after the rotation: %v", got)
	}
}

func TestFullDiskIsTold(t *testing.T) {
	t.Parallel()
	w := watch(t, t.TempDir(), nil)
	free := uint64(100)
	w.monitor.Space = func(string) (doctor.Space, error) { return doctor.Space{Free: free, Total: 1000}, nil }
	disk := "disk " + w.opt.DataDir
	w.want(w.see(0)) // a tenth is enough
	free = 99
	w.want(w.see(0), "open "+disk)
	free = 110 // not well enough to be over
	w.see(0)
	w.want(w.see(time.Hour), "open "+disk)
	free = 120
	w.see(0)
	w.want(w.see(time.Minute), "recovered "+disk)
	w.monitor.Space = func(string) (doctor.Space, error) { return doctor.Space{}, os.ErrPermission }
	w.want(w.see(time.Minute), "recovered "+disk) // what can't be seen is not news
}

// What counts as full is the operator's to say, for the alert and for doctor.
func TestFullDiskBySetting(t *testing.T) {
	t.Parallel()
	for percent, want := range map[string]bool{"0": false, "3": false, "7": true, "": true} {
		w := watch(t, t.TempDir(), map[string]string{"NIZE_ALERTS_DISK": percent})
		w.monitor.Space = func(string) (doctor.Space, error) { return doctor.Space{Free: 5 << 30, Total: 100 << 30}, nil }
		if got := w.see(0); len(got) == 1 != want {
			t.Errorf("alerts.disk %q with 5 %% free: %v", percent, got)
		}
		answer, err := w.ops.doctor.Examine(t.Context(), store.Caller{Role: store.Admin}, api.DoctorRequest{})
		if err != nil {
			t.Fatal(err)
		}
		warned := slices.ContainsFunc(answer.Findings, func(f api.Finding) bool { return f.Check == "disk" && f.Level == api.LevelWarning })
		if warned != want {
			t.Errorf("alerts.disk %q with 5 %% free: doctor warns: %t", percent, warned)
		}
	}
}

func TestFailedBackupIsTold(t *testing.T) {
	t.Parallel()
	w := watch(t, t.TempDir(), map[string]string{"NIZE_BACKUP_SCHEDULE": "@every 1h"})
	w.scheduler.backup(t.Context())
	w.want(w.see(0))
	dir := filepath.Join(w.opt.DataDir, "backups")
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // in the way
		t.Fatal(err)
	}
	w.off.Add(int64(time.Hour + time.Minute))
	w.scheduler.backup(t.Context())
	w.want(w.see(0), "open backup scheduled")
	path := w.opt.DataDir
	w.end() // a restart knows nothing of backups until one was made
	next := watch(t, path, map[string]string{"NIZE_BACKUP_SCHEDULE": "@every 1h"})
	next.off.Store(w.off.Load())
	next.want(next.see(time.Minute), "open backup scheduled")
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	next.scheduler.backupsDue = due{}
	next.scheduler.backup(t.Context())
	next.off.Add(int64(time.Hour + time.Minute))
	next.scheduler.backup(t.Context())
	next.want(next.see(0), "recovered backup scheduled")
}

// The trail is verified a while after a start that knows of no verification,
// and then by the schedule; a start after that knows.
func TestAuditIsVerified(t *testing.T) {
	t.Parallel()
	w := watch(t, t.TempDir(), nil)
	tomorrow := time.Now().AddDate(0, 0, 1)
	w.off.Store(int64(time.Until(time.Date(tomorrow.Year(), tomorrow.Month(), tomorrow.Day(), 12, 0, 0, 0, time.Local)))) // the schedule is daily, and no day ends between two steps that are near
	ctx := t.Context()
	verified := func() int {
		if err := w.db.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		events, err := w.db.Events(ctx, store.EventQuery{Kind: auditEvent, Outcome: store.Done})
		if err != nil {
			t.Fatal(err)
		}
		return len(events)
	}
	step := func(after time.Duration, want int) {
		t.Helper()
		w.off.Add(int64(after))
		w.scheduler.audit(ctx)
		if got := verified(); got != want {
			t.Fatalf("verified %d times, want %d", got, want)
		}
	}
	step(0, 0)
	step(auditFirst, 1)
	step(time.Minute, 1)
	step(25*time.Hour, 2)
	w.scheduler.auditsDue = due{} // a restart
	step(time.Minute, 2)
	step(auditFirst, 2)
	step(25*time.Hour, 3)

	w.want(w.see(0))
	w.scheduler.note(&w.scheduler.lastAudit, w.now(), fmt.Errorf("event 7 was changed"))
	w.want(w.see(0), "open audit trail")
	w.scheduler.note(&w.scheduler.lastAudit, w.now(), nil)
	w.want(w.see(0), "recovered audit trail")
}

// What the list of budgets, doctor and the alerts say of a budget is the same, in
// every order in which it is set, used, raised, lowered and removed.
func TestBudgetsAgree(t *testing.T) {
	t.Parallel()
	const ok, low, out = "ok", "low", "out"
	type step struct {
		do   string // set N, use N, remove, default N, day, restart
		want string // of all three; "" asks nobody
	}
	for name, test := range map[string]struct {
		subject string // user:* is everybody's, default the setting's
		steps   []step
	}{
		"used up":                            {"own", []step{{"set 100", ok}, {"use 70", ok}, {"use 15", low}, {"use 15", out}, {"use 5", out}}},
		"raised":                             {"own", []step{{"set 100", ok}, {"use 100", out}, {"set 1000", ok}}},
		"raised and lowered":                 {"own", []step{{"set 100", ok}, {"use 100", out}, {"set 1000", ok}, {"set 100", out}}},
		"raised, lowered half":               {"own", []step{{"set 100", ok}, {"use 100", out}, {"set 1000", ok}, {"set 110", low}}},
		"raised and used up":                 {"own", []step{{"set 100", ok}, {"use 100", out}, {"set 200", ok}, {"use 60", low}, {"use 40", out}}},
		"lowered below the use":              {"own", []step{{"set 1000", ok}, {"use 100", ok}, {"set 90", out}, {"set 120", low}, {"set 1000", ok}}},
		"used before it is set":              {"own", []step{{"use 100", ok}, {"set 100", out}}},
		"removed and set again":              {"own", []step{{"set 100", ok}, {"use 100", out}, {"remove", ok}, {"set 100", out}}},
		"unlimited for a while":              {"own", []step{{"set 100", ok}, {"use 100", out}, {"set 0", ok}, {"set 100", out}}},
		"another day":                        {"own", []step{{"set 100", ok}, {"use 100", out}, {"day", ok}, {"use 85", low}}},
		"another day, lowered":               {"own", []step{{"set 100", ok}, {"use 100", out}, {"set 1000", ok}, {"day", ok}, {"set 100", ok}}},
		"a restart between":                  {"own", []step{{"set 100", ok}, {"use 100", out}, {"set 1000", ok}, {"restart", ok}, {"set 100", out}, {"restart", out}}},
		"everybody's":                        {"user:*", []step{{"set 100", ok}, {"use 100", out}, {"set 1000", ok}, {"set 100", out}, {"remove", ok}}},
		"the setting's":                      {"default", []step{{"default 100", ok}, {"use 100", out}, {"default 1000", ok}, {"default 100", out}, {"default 0", ok}}},
		"a group's":                          {"group:ops", []step{{"set 100", ok}, {"use 100", out}, {"set 1000", ok}, {"set 100", out}}},
		"a team's":                           {"team:local", []step{{"set 100", ok}, {"use 100", out}, {"set 1000", ok}, {"set 100", out}}},
		"a model's":                          {"model:p/m", []step{{"set 100", ok}, {"use 85", low}, {"set 50", out}, {"set 100", low}}},
		"one's own in place of everybody's":  {"own", []step{{"everybody 50", ok}, {"set 1000", ok}, {"use 100", ok}, {"set 100", out}, {"set 1000", ok}}},
		"one's own, of calls":                {"calls own", []step{{"set 5", ok}, {"call 4", low}, {"call 1", out}, {"set 10", ok}, {"set 6", low}, {"day", ok}, {"call 6", out}, {"remove", ok}}},
		"everybody's, of calls":              {"calls user:*", []step{{"set 5", ok}, {"call 4", low}, {"restart", low}, {"call 1", out}, {"set 50", ok}}},
		"a group's, of calls":                {"calls group:ops", []step{{"set 5", ok}, {"call 5", out}, {"remove", ok}}},
		"everybody's once one's own is gone": {"user:*", []step{{"own 1000", ok}, {"set 100", ok}, {"use 100", ok}, {"disown", out}, {"own 1000", ok}}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			w := watch(t, dir, map[string]string{})
			ctx := t.Context()
			noon := time.Now().UTC().Truncate(24 * time.Hour).Add(36 * time.Hour)
			w.off.Store(int64(time.Until(noon))) // no day ends meanwhile
			mia, err := w.db.AddUser(ctx, boss, store.User{Name: "mia", Role: store.Member, Identities: []string{"named:mia"}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.db.AddGroup(ctx, boss, store.Group{Name: "ops", Members: []string{mia.ID}}); err != nil {
				t.Fatal(err)
			}
			own := store.Budget{Subject: "user:" + mia.ID, Period: store.Daily, Unit: store.InTokens}
			b := own
			subject, calls := strings.CutPrefix(test.subject, "calls ")
			if calls {
				b.Unit, b.Tool = store.InCalls, "box:*"
			}
			switch subject {
			case "own":
			case "default":
				b.Subject = store.Everybody
			default:
				b.Subject = subject
			}
			for _, s := range test.steps {
				verb, number, _ := strings.Cut(s.do, " ")
				n, _ := strconv.ParseInt(number, 10, 64)
				b.Limit, own.Limit = n, n
				everybody := own
				everybody.Subject = store.Everybody
				switch verb {
				case "set":
					err = w.db.PutBudget(ctx, boss, b)
				case "own":
					err = w.db.PutBudget(ctx, boss, own)
				case "everybody":
					err = w.db.PutBudget(ctx, boss, everybody)
				case "remove":
					err = w.db.DeleteBudget(ctx, boss, b)
				case "disown":
					err = w.db.DeleteBudget(ctx, boss, own)
				case "default":
					_, err = w.ops.settings.Put(ctx, boss, api.PutSettingRequest{Key: "budgets.user.daily", Value: number})
				case "use":
					_, err = w.db.SettleSpend(ctx, store.System, store.Spend{ID: store.NewID(w.now()), At: w.now(), User: mia.ID, Team: "local", Provider: "p", Model: "m", Prompt: n})
				case "call":
					for range n {
						if err = w.db.Reserve(ctx, store.System, store.Reservation{Tool: "box:x", Spend: store.Spend{ID: store.NewID(w.now()), User: mia.ID}}); err != nil {
							break
						}
					}
				case "day":
					w.off.Add(int64(24 * time.Hour))
				case "restart":
					off := w.off.Load()
					w.end()
					w = watch(t, dir, nil)
					w.off.Store(off)
				}
				if err != nil {
					t.Fatalf("%s: %v", s.do, err)
				}
				list, doctor, alerts := w.budgetWords(mia, b)
				if list != s.want || doctor != s.want || alerts != s.want {
					t.Fatalf("after %s: the list says %s, doctor %s, the alerts %s; want %s", s.do, list, doctor, alerts, s.want)
				}
			}
		})
	}
}

// budgetWords are what the list of budgets, doctor and the alerts say of one.
func (w *watched) budgetWords(mia store.User, b store.Budget) (list, examined, alerts string) {
	w.t.Helper()
	ctx := w.t.Context()
	list, examined, alerts = "ok", "ok", "ok"
	states, err := w.ops.budgets.List(ctx, boss, api.ListBudgetsRequest{})
	if b.Subject == store.Everybody {
		states, err = w.ops.budgets.List(ctx, boss, api.ListBudgetsRequest{User: mia.ID})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	for _, s := range states.Items {
		if s.Subject == b.Subject && s.State != "" {
			list = map[string]string{"warned": "low", "exceeded": "out"}[s.State]
		}
	}
	diagnosis, err := w.ops.doctor.Examine(ctx, boss, api.DoctorRequest{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range diagnosis.Findings {
		if f.Check != "budgets" || f.Level == api.LevelOK {
			continue
		}
		examined = map[api.Level]string{api.LevelWarning: "low", api.LevelProblem: "out"}[f.Level]
		if strings.Contains(f.Subject, mia.ID) || strings.HasPrefix(b.Subject, "user:") && strings.TrimSuffix(f.Subject, " (calls of box:*)") != "daily budget of mia" {
			w.t.Errorf("doctor speaks of %q", f.Subject)
		}
	}
	w.see(time.Second) // what recovered more than once must be well for a while
	for range 3 {
		w.see(10 * time.Minute)
	}
	for _, i := range w.all() {
		if !i.Active() || i.Kind != alert.BudgetLow && i.Kind != alert.BudgetOut {
			continue
		}
		if strings.Contains(i.Title.String(), mia.ID) {
			w.t.Errorf("an alert with an id: %s", i.Title)
		}
		if alerts = "low"; i.Kind == alert.BudgetOut {
			alerts = "out"
		}
	}
	return list, examined, alerts
}

// A migration that failed ends the start; the next daemon tells.
func TestFailedMigrationIsTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	note := func(to uint64, why string) {
		t.Helper()
		body, err := json.Marshal(backup.FailedMigration{At: time.Now(), To: to, Error: why})
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "nize.db.migration-failed"), body, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	note(database.Schema()+1, store.ErrDiskFull.Error()+": a migration needs 9 MiB free, there are 2")
	w := watch(t, dir, nil) // the older nized again
	subject := fmt.Sprintf("migration schema %d", database.Schema()+1)
	w.want(w.see(0), "open "+subject)
	w.want(w.see(time.Hour), "open "+subject)
	if i := w.all()[0]; !strings.Contains(i.Text.String(), "a migration needs 9 MiB free") {
		t.Errorf("%+v", i)
	}
	note(database.Schema(), store.ErrDiskFull.Error())
	w.end() // and now one whose migration went well
	w = watch(t, dir, nil)
	w.see(0)
	got := w.see(time.Minute)
	if slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "open") }) || len(got) != 2 {
		t.Errorf("after it succeeded: %v", got)
	}
	if note, err := w.dir.FailedMigration(); note != nil || err != nil {
		t.Errorf("the note is still there: %v", err)
	}
}

// A check that errs leaves its kinds as they were, and the others go on.
func TestCheckThatErrs(t *testing.T) {
	t.Parallel()
	w := watch(t, t.TempDir(), nil)
	if err := os.WriteFile(filepath.Join(w.opt.DataDir, "nize.db.migration-failed"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	result := w.monitor.Check(t.Context())
	if !slices.Contains(result.Unknown, alert.Key{Kind: alert.Migration}) || slices.Contains(result.Unknown, alert.Key{Kind: alert.Disk}) {
		t.Errorf("%+v", result)
	}
}

// The address of a webhook can be as good as a password: members learn that
// there is one.
func TestMembersDoNotSeeWhereAlertsGo(t *testing.T) {
	t.Parallel()
	w := watch(t, t.TempDir(), map[string]string{"NIZE_ALERTS_TO": "https://hooks.example.com/s3cret"})
	for role, sees := range map[store.Role]bool{store.Admin: true, store.Member: false} {
		by := store.Caller{User: "u", Role: role}
		list, err := w.ops.settings.List(t.Context(), by, api.ListSettingsRequest{})
		if err != nil || strings.Contains(fmt.Sprint(list), "s3cret") != sees {
			t.Errorf("%s lists: %v", role, err)
		}
		one, err := w.ops.settings.Explain(t.Context(), by, api.ExplainSettingRequest{Key: "alerts.to"})
		if strings.Contains(fmt.Sprint(one, err), "s3cret") != sees {
			t.Errorf("%s explains: %v, %v", role, one, err)
		}
		status, err := w.ops.status.Show(t.Context(), by, api.Empty{})
		if err != nil || len(status.Process.ChildProcesses) > 0 && !sees {
			t.Errorf("%s: %+v, %v", role, status, err)
		}
	}
}
