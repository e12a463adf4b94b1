package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Generated tools look like those of real servers: a name, a sentence or two, a schema of
// three to five described properties. Number i is one combination of system, object and
// verb, so that no two are alike.

type tool struct {
	name, description string
	schema            json.RawMessage
	reads             bool
	asks              string // a request of a person who needs it
}

var verbs = []struct {
	word, does string
	reads      bool
}{
	{"list", "Lists", true}, {"get", "Returns", true}, {"search", "Searches", true}, {"count", "Counts", true},
	{"export", "Exports", true}, {"compare", "Compares", true}, {"create", "Creates", false}, {"update", "Updates", false},
	{"delete", "Deletes", false}, {"archive", "Archives", false}, {"restore", "Restores", false}, {"assign", "Assigns", false},
	{"approve", "Approves", false}, {"schedule", "Schedules", false}, {"share", "Shares", false}, {"merge", "Merges", false},
	{"validate", "Validates", true}, {"summarize", "Summarizes", true}, {"notify_about", "Sends notices about", false}, {"tag", "Tags", false},
}

var objects = []string{
	"invoices", "payments", "refunds", "subscriptions", "customers", "leads", "contracts", "quotes", "orders", "shipments",
	"warehouses", "products", "price lists", "coupons", "tickets", "incidents", "alerts", "dashboards", "metrics", "log streams",
	"deployments", "clusters", "containers", "volumes", "backups", "databases", "tables", "queries", "pipelines", "builds",
	"repositories", "branches", "pull requests", "code reviews", "releases", "milestones", "documents", "spreadsheets", "presentations", "folders",
	"calendars", "meetings", "rooms", "messages", "channels", "mailing lists", "campaigns", "surveys", "photos", "recordings",
}

var systems = []string{
	"billing", "crm", "warehouse", "helpdesk", "monitoring", "cloud", "datalake", "ci", "wiki", "office",
	"payroll", "hiring", "legal", "travel", "fleet", "clinic", "school", "library", "farm", "studio",
}

var details = []string{
	"Results are sorted by the date of the last change.", "Only entries that the caller may see are returned.",
	"Fails if the entry is locked by somebody else.", "Use the cursor of the last answer to go on.",
	"Times are in UTC, amounts in the account's currency.",
}

var properties = []string{
	`"id":{"type":"string","description":"Identifier of the entry."}`,
	`"status":{"type":"string","enum":["open","pending","closed"],"description":"Only entries in this state."}`,
	`"since":{"type":"string","format":"date-time","description":"Only entries changed after this time."}`,
	`"limit":{"type":"integer","minimum":1,"maximum":200,"default":50,"description":"How many entries at most."}`,
	`"owner":{"type":"string","description":"E-mail address of the owner."}`,
	`"note":{"type":"string","description":"A remark that is kept in the history."}`,
	`"dry_run":{"type":"boolean","description":"Only say what would be done."}`,
}

// maxTools is the number of different tools.
var maxTools = len(verbs) * len(objects) * len(systems)

// generate returns tool number i.
func generate(i int) tool {
	if i < 0 || i >= maxTools {
		panic(fmt.Sprintf("there are %d generated tools, and no number %d", maxTools, i))
	}
	v := verbs[i%len(verbs)]
	object := objects[i/len(verbs)%len(objects)]
	system := systems[i/len(verbs)/len(objects)]
	var props []string
	for k := range 3 + i%3 {
		props = append(props, properties[(i+k)%len(properties)])
	}
	return tool{
		name:        system + "_" + v.word + "_" + strings.ReplaceAll(object, " ", "_"),
		description: fmt.Sprintf("%s %s in the %s system. %s", v.does, object, system, details[i%len(details)]),
		schema:      json.RawMessage(`{"type":"object","properties":{` + strings.Join(props, ",") + `}}`),
		reads:       v.reads,
		asks:        fmt.Sprintf("%s the %s of our %s system", strings.ReplaceAll(v.word, "_", " "), object, system),
	}
}

// split distributes count tools among servers of at most size tools.
func split(count, size int) []batch {
	var list []batch
	for first := 0; first < count; first += size {
		list = append(list, batch{First: first, Count: min(size, count-first)})
	}
	return list
}
