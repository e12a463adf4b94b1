package metrics

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// stateCollector reads nized's state at each scrape.
type stateCollector struct{ m *Metrics }

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("nize_"+name, help, labels, nil)
}

var (
	buildInfo       = describe("build_info", "The version of nized; always 1.", "version")
	uptime          = describe("uptime_seconds", "Time since nized was started.")
	servers         = describe("servers", "Registered MCP servers by state.", "state")
	serverUp        = describe("server_up", "1 if a server can be called: it is ready, or idle until the next call.", "server")
	serverRestarts  = describe("server_restarts_total", "Sessions of a server that ended by themselves.", "server")
	tools           = describe("tools", "Tools by state: accepted, or held until an admin accepts them.", "state")
	indexTools      = describe("index_tools", "Tools in the index of discovery.")
	indexVectors    = describe("index_vectors", "Tools in the index that have a vector.")
	approvals       = describe("approvals_waiting", "Calls that wait for a person.")
	running         = describe("calls_running", "Calls that run.")
	sessions        = describe("mcp_sessions", "Sessions of MCP clients, and connections of their own.")
	sessionsEnded   = describe("mcp_sessions_ended_total", "Sessions of MCP clients that were ended to make room for others.")
	requests        = describe("mcp_requests", "Requests of MCP clients under way.")
	connections     = describe("http_connections", "Connections to the HTTP listener: signed in, or not.", "signed_in")
	connectionsMost = describe("http_connections_max", "The limit of connections.")
	connectionsCut  = describe("http_connections_ended_total", "Connections that were ended to make room for others.")
	connectionsShut = describe("http_connections_refused_total", "Connections and requests that were refused because a limit was reached.")
	queues          = describe("queue_depth", "Items that are queued inside nized.", "queue")
	incidents       = describe("incidents_open", "Open incidents.")
	botUp           = describe("bot_connected", "1 if a chat platform is connected.", "bot")
	children        = describe("child_processes", "Child processes of nized.")
	childMemory     = describe("child_processes_resident_bytes", "Resident memory of all child processes, if the system reports it.")
	databaseSize    = describe("database_size_bytes", "Size of the database file.")
	lastBackup      = describe("last_backup_timestamp_seconds", "Time of the newest backup; 0 if there is none.")
	commits         = describe("store_commits_total", "Transactions of the database that changed something.")
	commitTime      = describe("store_commit_seconds_total", "Total time of these transactions.")
	collectedStates = []*prometheus.Desc{buildInfo, uptime, servers, serverUp, serverRestarts, tools, indexTools, indexVectors, approvals, running,
		sessions, sessionsEnded, requests, connections, connectionsMost, connectionsCut, connectionsShut, queues, incidents, botUp, children, childMemory, databaseSize, lastBackup, commits, commitTime}
)

// serverStates are all states of a server, so that each has a series.
var serverStates = []string{"ready", "connecting", "unreachable", "idle", "open", "disabled"}

func (c stateCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range collectedStates {
		to <- d
	}
}

func (c stateCollector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	s, err := c.m.opt.State(ctx)
	if err != nil {
		to <- prometheus.NewInvalidMetric(buildInfo, fmt.Errorf("reading the state of nized: %w", err))
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	gauge(buildInfo, 1, s.Version)
	gauge(uptime, s.Uptime)
	byState, accepted, held := map[string]int{}, 0, 0
	for i, v := range s.Servers {
		byState[v.State]++
		held += v.Held + v.Refused
		accepted += v.ToolCount - v.Held - v.Refused
		if i < mostServers {
			gauge(serverUp, truth(v.State == "ready" || v.State == "idle"), label(v.Name))
			counter(serverRestarts, float64(v.Restarts), label(v.Name))
		}
	}
	for _, state := range serverStates {
		gauge(servers, float64(byState[state]), state)
	}
	gauge(tools, float64(accepted), "accepted")
	gauge(tools, float64(held), "held")
	gauge(indexTools, float64(s.IndexTools))
	gauge(indexVectors, float64(s.IndexVectors))
	gauge(approvals, float64(s.Pending))
	gauge(running, float64(s.Running))
	gauge(sessions, float64(s.Sessions))
	counter(sessionsEnded, float64(s.SessionsEnded))
	gauge(requests, float64(s.Requests))
	gauge(connections, float64(s.Connections.Open-s.Connections.Unauthenticated), "true")
	gauge(connections, float64(s.Connections.Unauthenticated), "false")
	gauge(connectionsMost, float64(s.Connections.Most))
	counter(connectionsCut, float64(s.Connections.Ended))
	counter(connectionsShut, float64(s.Connections.Refused))
	for _, q := range s.Queues {
		gauge(queues, float64(q.Depth), label(q.Name))
	}
	gauge(incidents, float64(s.Incidents))
	for _, b := range s.Bots {
		gauge(botUp, truth(b.State == "connected"), label(b.Name))
	}
	gauge(children, float64(s.Process.Children))
	memory := uint64(0)
	for _, p := range s.Process.ChildProcesses {
		memory += p.ResidentBytes
	}
	gauge(childMemory, float64(memory))
	gauge(databaseSize, float64(s.Database.SizeBytes))
	backup := 0.0
	if at := s.Database.LastBackup; !at.IsZero() {
		backup = float64(at.Unix())
	}
	gauge(lastBackup, backup)
	counter(commits, float64(s.Commits))
	counter(commitTime, s.CommitTime.Seconds())
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
