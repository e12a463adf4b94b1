package daemon

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	"nize/store/bolt"
)

// A child that is killed and can't start again is down after five minutes; it
// is over when it is well for one.
func TestKilledChildIsTold(t *testing.T) {
	w := watch(t, t.TempDir(), nil)
	box := filepath.Join(t.TempDir(), "nize-toolbox")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", box, "nize/cmd/nize-toolbox").CombinedOutput(); err != nil {
		t.Fatalf("building nize-toolbox: %v\n%s", err, out)
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
	w := watch(t, t.TempDir(), nil)
	m := mcptest.New(t, mcptest.Options{Tools: []mcptest.Tool{{Name: "f"}, {Name: "g"}}})
	w.register(boss, store.Server{Name: "far", Transport: store.HTTP, URL: m.HTTP()})
	w.want(w.see(0))
	m.SetTool(mcptest.Tool{Name: "g", Description: "now it does something else"})
	if _, err := w.pool.Sync(t.Context(), store.System, "far"); err != nil {
		t.Fatal(err)
	}
	w.want(w.see(0), "open tool.held far:g")
	if i := w.all()[0]; i.Cure != "nizectl servers trust far g" || !strings.Contains(i.Text.String(), "another than the accepted one") {
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

func TestBudgetsAreTold(t *testing.T) {
	dir := t.TempDir()
	w := watch(t, dir, nil)
	ctx := t.Context()
	mia, err := w.db.AddUser(ctx, boss, store.User{Name: "mia", Role: store.Member, Identities: []string{"named:mia"}})
	if err != nil {
		t.Fatal(err)
	}
	say := func(kind, subject string, data any) {
		t.Helper()
		raw, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		w.db.AddEvent(store.System, store.Event{Kind: kind, Subject: subject, Data: raw})
		if err := w.db.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
	own := struct {
		Subject, Period, Unit string
		Limit, Used           int64
		Resets                time.Time
	}{Subject: "user:*", Period: "daily", Unit: "tokens", Limit: 100, Used: 85, Resets: w.now().Add(10 * time.Hour)}
	say("budget.warned", "user:"+mia.ID, own)
	key := "user:" + mia.ID + " daily tokens"
	w.want(w.see(0), "open budget.warned "+key)
	if i := w.all()[0]; i.Title.String() != "The daily budget of mia is nearly used up" || !slices.Equal(i.Users, []string{mia.ID}) {
		t.Errorf("%+v", i)
	}
	own.Used = 100
	say("budget.exceeded", "user:"+mia.ID, own)
	w.want(w.see(0), "open budget.exceeded "+key, "recovered budget.warned "+key)

	w.end() // the next daemon reads it in the trail, and repeats nothing
	off := w.off.Load()
	w = watch(t, dir, nil)
	w.off.Store(off)
	w.want(w.see(0), "open budget.exceeded "+key, "recovered budget.warned "+key)
	own.Limit = 1000
	say("budget.put", "user:*", own)
	w.want(w.see(0), "recovered budget.exceeded "+key, "recovered budget.warned "+key)
	say("budget.exceeded", "team:ops", struct{}{})
	say("budget.put", "", nil)
	got := w.see(0)
	if !slices.Contains(got, "open budget.exceeded team:ops") {
		t.Fatalf("an event that says little: %v", got)
	}
	if got := w.see(25 * time.Hour); !slices.Contains(got, "recovered budget.exceeded team:ops") {
		t.Fatalf("a day later: %v", got)
	}
}

// What the store itself says of a budget is understood.
func TestBudgetOfTheStoreIsTold(t *testing.T) {
	w := watch(t, t.TempDir(), nil)
	noon := time.Now().UTC().Truncate(24 * time.Hour).Add(36 * time.Hour)
	w.off.Store(int64(time.Until(noon))) // no day ends meanwhile
	ctx := t.Context()
	b := store.Budget{Subject: "user:*", Period: store.Daily, Unit: store.InTokens, Limit: 100}
	if err := w.db.PutBudget(ctx, boss, b); err != nil {
		t.Fatal(err)
	}
	mia, err := w.db.AddUser(ctx, boss, store.User{Name: "mia", Role: store.Member, Identities: []string{"named:mia"}})
	if err != nil {
		t.Fatal(err)
	}
	spend := func(tokens int64) {
		t.Helper()
		row := store.Spend{ID: store.NewID(w.now()), At: w.now(), User: mia.ID, Provider: "p", Model: "p/m", Prompt: tokens}
		if _, err := w.db.SettleSpend(ctx, store.System, row); err != nil {
			t.Fatal(err)
		}
	}
	spend(70)
	w.want(w.see(0))
	spend(15)
	key := "user:" + mia.ID + " daily tokens"
	w.want(w.see(0), "open budget.warned "+key)
	spend(50)
	w.want(w.see(0), "open budget.exceeded "+key, "recovered budget.warned "+key)
	b.Limit = 10_000
	if err := w.db.PutBudget(ctx, boss, b); err != nil {
		t.Fatal(err)
	}
	w.want(w.see(0), "recovered budget.exceeded "+key, "recovered budget.warned "+key)
}

// A migration that failed ends the start; the next daemon tells.
func TestFailedMigrationIsTold(t *testing.T) {
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
	note(bolt.Schema()+1, store.ErrDiskFull.Error()+": a migration needs 9 MiB free, there are 2")
	w := watch(t, dir, nil) // the older nized again
	subject := fmt.Sprintf("migration schema %d", bolt.Schema()+1)
	w.want(w.see(0), "open "+subject)
	w.want(w.see(time.Hour), "open "+subject)
	if i := w.all()[0]; !strings.Contains(i.Text.String(), "a migration needs 9 MiB free") {
		t.Errorf("%+v", i)
	}
	note(bolt.Schema(), store.ErrDiskFull.Error())
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
