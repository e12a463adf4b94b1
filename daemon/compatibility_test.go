package daemon_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"nize/daemon"
	"nize/daemon/api"
)

// TestAnswersStay reads the answers that earlier builds gave, as COMPATIBILITY.md
// promises: today's answers have every recorded field with the same JSON type, and
// today's types decode the recorded answers. Answers may gain fields. With -update
// the file is written anew, but only if nothing recorded was lost: to end a
// deprecation, delete the field from its recorded answer by hand.
func TestAnswersStay(t *testing.T) {
	golden := filepath.Join("testdata", "answers.golden")
	recorded := map[string]json.RawMessage{}
	for line := range strings.Lines(readGolden(t, golden)) {
		fields := strings.SplitN(strings.TrimSpace(line), " ", 3)
		recorded[fields[0]+" "+fields[1]] = json.RawMessage(fields[2])
	}
	answers := map[string]json.RawMessage{}
	for _, op := range daemon.Operations() {
		name := op.Method + " " + op.Path
		v := reflect.New(op.Answer)
		fillValue(v.Elem())
		answer, err := json.Marshal(v.Interface())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		answers[name] = answer
		old, ok := recorded[name]
		if !ok {
			continue
		}
		for _, lost := range lostFields(t, old, answer) {
			t.Errorf("%s: %s", name, lost)
		}
		if err := json.Unmarshal(old, reflect.New(op.Answer).Interface()); err != nil {
			t.Errorf("%s: an answer of an earlier build can't be read: %v", name, err)
		}
	}
	for name := range recorded {
		if answers[name] == nil {
			t.Errorf("%s: the operation was removed", name)
		}
	}
	if *update && !t.Failed() {
		var b bytes.Buffer
		for _, name := range slices.Sorted(maps.Keys(answers)) {
			fmt.Fprintf(&b, "%s %s\n", name, answers[name])
		}
		writeGolden(t, golden, b.Bytes())
	}
}

// TestDocumentStays compares the API of programs with the document that an earlier
// build served: no operation, parameter or field goes away or changes its type, and
// no request needs a field that it didn't need. With -update the file is written
// anew, but only if nothing recorded was lost.
func TestDocumentStays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open(t, dir, nil)
	addr, err := os.ReadFile(filepath.Join(dir, "nized.addr"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := onceClient.Get("http://" + strings.TrimSpace(string(addr)) + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var doc map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&doc); err != nil {
		t.Fatal(err)
	}
	facts := map[string]bool{}
	documentFacts(facts, "", doc)
	golden := filepath.Join("testdata", "openapi.golden")
	recorded := map[string]bool{}
	for line := range strings.Lines(readGolden(t, golden)) {
		recorded[strings.TrimSpace(line)] = true
	}
	for fact := range recorded {
		if !facts[fact] && !strings.Contains(fact, " requires ") {
			t.Errorf("the document no longer has %q", fact)
		}
	}
	for fact := range facts {
		schema, _, needs := strings.Cut(fact, " requires ")
		if needs && len(recorded) > 0 && !recorded[fact] && recorded[schema] {
			t.Errorf("the document now has %q", fact)
		}
	}
	if *update && !t.Failed() {
		writeGolden(t, golden, []byte(strings.Join(slices.Sorted(maps.Keys(facts)), "\n")+"\n"))
	}
}

// documentFacts notes what clients rely on in a document of OpenAPI, one line each:
// "PLACE", "PLACE is TYPE" and "PLACE requires FIELD". A schema's requirements
// stand for requests and answers alike, so an answer's new field must be optional
// in the document, too.
func documentFacts(facts map[string]bool, place string, v any) {
	node, ok := v.(map[string]any)
	if !ok {
		return
	}
	facts[place] = true
	if kind, ok := node["type"]; ok {
		facts[fmt.Sprintf("%s is %v", place, kind)] = true
	}
	if ref, ok := node["$ref"]; ok {
		facts[fmt.Sprintf("%s is %v", place, ref)] = true
	}
	if required, ok := node["required"].([]any); ok {
		for _, field := range required {
			facts[fmt.Sprintf("%s requires %v", place, field)] = true
		}
	}
	for name, child := range node {
		list, _ := child.([]any)
		switch {
		case strings.HasSuffix(place, "/properties"): // name is a field's
			documentFacts(facts, place+"/"+name, child)
		case slices.Contains([]string{"examples", "example", "default", "info", "discriminator"}, name):
		case name == "parameters":
			for _, p := range list {
				param, _ := p.(map[string]any)
				documentFacts(facts, fmt.Sprintf("%s/%v %v", place, param["in"], param["name"]), param)
			}
		default:
			documentFacts(facts, place+"/"+name, child)
			for _, variant := range list { // oneOf and its kin
				documentFacts(facts, place+"/"+name, variant)
			}
		}
	}
}

// TestErrorsStay: scripts go by the codes of errors and by nizectl's exit codes.
func TestErrorsStay(t *testing.T) {
	for code, want := range map[string][2]int{
		"disk_full": {507, 1}, "no_database": {503, 1}, "closed": {503, 1}, "newer_schema": {503, 1}, "not_found": {404, 4}, "exists": {409, 5},
		"conflict": {409, 5}, "decided": {409, 5}, "expired": {410, 5}, "refused": {403, 6}, "invalid": {400, 2}, "invalid_arguments": {400, 2},
		"cancelled": {409, 6}, "rate_limited": {429, 1}, "unavailable": {502, 1}, "timeout": {504, 1}, "outcome_unknown": {502, 1},
		"tool_error": {502, 1}, "unknown_route": {404, 1}, "internal": {500, 1}, "no_daemon": {0, 3},
	} {
		i := slices.IndexFunc(api.Table, func(row api.Row) bool { return row.Code == code })
		if i < 0 {
			t.Errorf("error code %s was removed", code)
		} else if got := [2]int{api.Table[i].Status, api.Table[i].Exit}; got != want {
			t.Errorf("%s has status and exit code %v, want %v", code, got, want)
		}
	}
}

// lostFields are the fields of an old JSON document that a new one lacks or has
// with another type.
func lostFields(t *testing.T, before, now json.RawMessage) []string {
	t.Helper()
	types := [2]map[string]string{{}, {}}
	for i, doc := range []json.RawMessage{before, now} {
		var v any
		if err := json.Unmarshal(doc, &v); err != nil {
			t.Fatalf("%v: %s", err, doc)
		}
		jsonTypes(types[i], "", v)
	}
	var lost []string
	for _, path := range slices.Sorted(maps.Keys(types[0])) {
		switch was, is := types[0][path], types[1][path]; {
		case is == "":
			lost = append(lost, fmt.Sprintf("field %s was removed", path))
		case is != was && was != "null" && is != "null":
			lost = append(lost, fmt.Sprintf("field %s was a %s, and is a %s", path, was, is))
		}
	}
	return lost
}

// jsonTypes notes the type of each place of a JSON value.
func jsonTypes(types map[string]string, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		types[path] = "object"
		for name, field := range v {
			jsonTypes(types, path+"."+name, field)
		}
	case []any:
		types[path] = "array"
		for _, item := range v {
			jsonTypes(types, path+"[]", item)
		}
	case string:
		types[path] = "string"
	case float64:
		types[path] = "number"
	case bool:
		types[path] = "boolean"
	case nil:
		types[path] = "null"
	}
}

// TestLostFields: what the tests of recorded answers find, and what they allow.
func TestLostFields(t *testing.T) {
	const before = `{"id":"a","count":1,"items":[{"name":"b","on":true}]}`
	for now, want := range map[string]string{
		before: "",
		`{"id":"a","count":1,"items":[{"name":"b","on":true,"new":1}],"more":{}}`: "",
		`{"count":1,"items":[{"name":"b","on":true}]}`:                            "field .id was removed",
		`{"id":"a","count":"1","items":[{"name":"b","on":true}]}`:                 "field .count was a number, and is a string",
		`{"id":"a","count":1,"items":[{"title":"b","on":true}]}`:                  "field .items[].name was removed",
		`{"id":"a","count":1,"items":{"name":"b"}}`:                               "field .items was a array, and is a object|field .items[] was removed|field .items[].name was removed|field .items[].on was removed",
	} {
		if got := strings.Join(lostFields(t, json.RawMessage(before), json.RawMessage(now)), "|"); got != want {
			t.Errorf("%s: %s, want %s", now, got, want)
		}
	}
}

func readGolden(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && (!*update || !os.IsNotExist(err)) {
		t.Fatal(err)
	}
	return string(text)
}

func writeGolden(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}
