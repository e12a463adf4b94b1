package daemon

import (
	"net/http"

	"nize/daemon/api"
	"nize/daemon/control"
	"nize/daemon/monitor"
	"nize/daemon/mux"
	"nize/daemon/settings"
)

// operations are the nouns of the control API. Each is made once, by wire, and
// serves nizectl, the chats and the pages alike.
type operations struct {
	budgets  *control.Budgets
	alerts   *monitor.Alerts
	doctor   *monitor.Doctor
	status   *monitor.Status
	settings *settings.Settings
}

func (d *Daemon) newOperations() *operations {
	alerts := d.newAlerts()
	return &operations{
		alerts: alerts, doctor: d.newDoctor(alerts), status: d.newStatus(alerts),
		budgets:  &control.Budgets{Store: d.db, Users: d.db, Directory: d.directory, Config: d.config, CheckTarget: d.checkTarget, Now: d.now},
		settings: &settings.Settings{Config: d.config, Directory: d.directory, Defaults: d.defaults, CheckTarget: d.checkTarget, CheckExamples: d.checkExamples, Changed: d.settingChanged},
	}
}

// mount ties each operation of daemon/api to its function. What it
// leaves out is in none of the two: a test compares them.
func (o *operations) mount(m *mux.Mux) {
	mux.Handle(m, api.ListAlerts, o.alerts.List)
	mux.Handle(m, api.TestAlert, o.alerts.Test)
	mux.Handle(m, api.AckAlert, o.alerts.Acknowledge)
	mux.Handle(m, api.ListBudgets, o.budgets.List)
	mux.Handle(m, api.RemoveBudget, o.budgets.Remove)
	mux.Handle(m, api.SetBudget, o.budgets.Set)
	mux.Handle(m, api.ListSettings, o.settings.List)
	mux.Handle(m, api.UnsetSetting, o.settings.Unset)
	mux.Handle(m, api.ExplainSetting, o.settings.Explain)
	mux.Handle(m, api.PutSetting, o.settings.Put)
	mux.Handle(m, api.Doctor, o.doctor.Examine)
	mux.Handle(m, api.GetStatus, o.status.Show)
}

// controlMux serves the operations to who sits at the control socket.
func (d *Daemon) controlMux(on *http.ServeMux) *mux.Mux {
	m := mux.New(on, mux.Options{Caller: d.socketCaller, Fail: failControl, Listen: d.listeners.enter, Closing: d.closing, Log: d.log})
	d.ops.mount(m)
	return m
}
