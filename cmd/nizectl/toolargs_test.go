package main

import (
	"encoding/json"
	"strings"
	"testing"
)

const argsSchema = `{"type":"object","additionalProperties":false,"properties":{
	"place":{"type":"string"}, "n":{"type":"integer"}, "x":{"type":"number"}, "on":{"type":"boolean"},
	"tags":{"type":"array","items":{"type":"string"}}, "ids":{"type":"array","items":{"type":"integer"}},
	"maybe":{"type":["string","null"]}, "either":{"type":["string","number"]}, "count":{"anyOf":[{"type":"integer"},{"type":"null"}]},
	"unit":{"enum":["km","mi"]}, "level":{"enum":[1,2,"2"]}, "mode":{"$ref":"#/$defs/mode"}, "deep":{"type":"object"},
	"any":{}, "loop":{"$ref":"#/properties/loop"}, "all":{"allOf":[{"type":"boolean"}]}, "some":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]},
	"odd:":{"type":"string"}, "a.b":{"type":"string"}, "list":{"type":"array"}, "optional":{"anyOf":[{"type":"array","items":{"type":"number"}},{"type":"null"}]}},
	"$defs":{"mode":{"type":"string","enum":["fast","slow"]}}}`

// TestWordArgs: words have the types of the schema; what has two readings is refused.
func TestWordArgs(t *testing.T) {
	for words, want := range map[string]string{
		"place=Tokyo":                    `{"place":"Tokyo"}`,
		"place=":                         `{"place":""}`,
		"place=12":                       `{"place":"12"}`,
		"place=null":                     `{"place":"null"}`,
		"place=a=b":                      `{"place":"a=b"}`,
		"place=<a>&\"":                   `{"place":"<a>&\""}`,
		"n=-5|x=2.50|on=true":            `{"n":-5,"x":2.50,"on":true}`,
		"n=12345678901234567890":         `{"n":12345678901234567890}`,
		"tags=a":                         `{"tags":["a"]}`,
		"tags=a|tags=b c":                `{"tags":["a","b c"]}`,
		"ids=1,2|ids=3":                  `{"ids":[1,2,3]}`,
		"maybe=word":                     `{"maybe":"word"}`,
		"either=word":                    `{"either":"word"}`,
		"count=3":                        `{"count":3}`,
		"count=null":                     `{"count":null}`,
		"unit=km":                        `{"unit":"km"}`,
		"level=1":                        `{"level":1}`,
		"mode=fast|all=false":            `{"mode":"fast","all":false}`,
		"deep:={\"a\":[1]}|place:=\"x\"": `{"deep":{"a":[1]},"place":"x"}`,
		"any=word|loop=word":             `{"any":"word","loop":"word"}`,
		"tags:=[\"a,b\"]":                `{"tags":["a,b"]}`,
		"a.b=x":                          `{"a.b":"x"}`,
		"list=word":                      `{"list":["word"]}`,
	} {
		got, err := wordArgs("s:t", json.RawMessage(argsSchema), strings.Split(words, "|"))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v, want %s", words, got, err, want)
		}
	}
	for words, want := range map[string]string{
		"word":                     `"word" is no argument: write KEY=VALUE`,
		"=word":                    "is no argument",
		"plac=Tokyo":               "plac is not a parameter of s:t; did you mean place?",
		"zzzzzzzz=1":               "zzzzzzzz is not a parameter of s:t: it has a.b, all,",
		"n=five":                   "n=five: want a whole number",
		"n=007":                    "n=007: want a whole number",
		"n=":                       "n=: want a whole number",
		"n=1,000":                  "want a whole number",
		"x=0x10":                   "x=0x10: want a number",
		"on=yes":                   "on=yes: want true or false",
		"tags=a,b":                 `tags=a,b may be one item or several: write tags:='["a,b"]' or tags:='["a","b"]', or repeat tags=ITEM`,
		`tags=["a"]`:               "may be one item of it or the whole",
		"ids=1,x":                  "ids=x: want a whole number",
		"maybe=null":               `maybe=null can be read in 2 ways: write maybe:='"null"' or maybe:=null`,
		"either=5":                 `either=5 can be read in 2 ways: write either:='"5"' or either:=5`,
		"level=2":                  `level=2 can be read in 2 ways`,
		"any=5":                    "any=5 can be read in 2 ways",
		"any={}":                   "any={} can be read in 2 ways",
		"deep={}":                  "deep is an object: write it as JSON, such as deep:='{…}'",
		"deep.a=1":                 "deep.a is not a parameter of s:t, but deep is: pass it as a whole",
		"place=a|place=b":          "place is given twice, but it is not a list",
		"place=a|place:=1":         "place is given twice",
		"place:=a":                 "a text is place=…",
		"n:=1|n:=2":                "n is given twice",
		"some=word":                "some may be a list or not: write some:=JSON",
		"odd:=word":                "pass the arguments with --args",
		"optional=null":            "may be one item of it or the whole",
		"place:={\"a\":1,\"a\":2}": "duplicate key",
	} {
		got, err := wordArgs("s:t", json.RawMessage(argsSchema), strings.Split(words, "|"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s, %v, want an error with %q", words, got, err, want)
		}
	}
}

// FuzzWordArgs: whatever the schema and the words are, the arguments are an object
// of the keys that were given.
func FuzzWordArgs(f *testing.F) {
	f.Add(argsSchema, "place=Tokyo", "n:=5")
	f.Add(`{"properties":{"a":{"$ref":"#"}}}`, "a=[", "b=1")
	f.Add(`{"properties":{"a":{"enum":[null,{}]}}}`, "a=null", "c=")
	f.Add(`{"properties":{"a":{"type":"array","items":{"anyOf":[{"type":"array"}]}}}}`, "a=b", "a=c")
	f.Fuzz(func(t *testing.T, schema, one, two string) {
		got, err := wordArgs("s:t", json.RawMessage(schema), []string{one, two})
		if err != nil {
			return
		}
		members := map[string]json.RawMessage{}
		if err := json.Unmarshal(got, &members); err != nil || len(members) == 0 || len(members) > 2 {
			t.Errorf("%q %q: %s, %v", one, two, got, err)
		}
	})
}
