package openapi_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nize/mcp/upstream/openapi"
	"nize/mcp/upstream/openapi/openapitest"
	"nize/mcp/upstream/wire"
	"nize/store"
)

// connect reads a document for a service and returns what calls its operations.
func connect(t *testing.T, doc []byte, base string, header http.Header) func(tool, args string) (json.RawMessage, error) {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	d, err := openapi.Read(doc, openapi.Options{Base: u})
	if err != nil {
		t.Fatal(err)
	}
	c := openapi.NewConn(t.Context(), openapi.ConnOptions{Base: u, First: d, Transport: http.DefaultTransport, Hint: "set a header", Agent: "nize/test",
		Header: func(context.Context) (http.Header, error) { return header.Clone(), nil }})
	t.Cleanup(func() { c.Terminate(true) })
	metas := map[string]json.RawMessage{}
	for _, tool := range d.Tools {
		if metas[tool.Name], err = json.Marshal(tool.Meta); err != nil {
			t.Fatal(err)
		}
	}
	return func(tool, args string) (json.RawMessage, error) {
		if metas[tool] == nil {
			t.Fatalf("no tool %s; warnings %q", tool, d.Warnings)
		}
		return c.Call(t.Context(), &wire.Request{Method: wire.MethodCall, Name: tool, Args: json.RawMessage(args), Definition: metas[tool]})
	}
}

// Each request says what the document demands, by its own judge.
func TestRequests(t *testing.T) {
	parameter := func(in, rest string) string {
		path := ""
		if in == "path" {
			path, rest = "/{p}", `"required":true,`+rest
		}
		return fmt.Sprintf(`"/x%s":{"get":{"operationId":"op","parameters":[{"name":"p","in":%q,%s}],"responses":{"200":{"description":"ok"}}}}`, path, in, rest)
	}
	body := func(media, schema, rest string) string {
		return fmt.Sprintf(`"/x":{"post":{"operationId":"op","requestBody":{"required":true,"content":{%q:{"schema":%s%s}}},"responses":{"200":{"description":"ok"}}}}`, media, schema, rest)
	}
	const list, object = `"schema":{"type":"array","items":{"type":"string"}}`, `"schema":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}`
	const text = `"schema":{"type":"string"}`
	for _, c := range []struct{ name, path, args, url, body string }{
		{"path", parameter("path", text), `{"p":"a/b c?d#e%2F"}`, "/v1/x/a%2Fb%20c%3Fd%23e%252F", ""},
		{"path, a list", parameter("path", list), `{"p":["a","b"]}`, "/v1/x/a,b", ""},
		{"path, an object", parameter("path", object), `{"p":{"a":"1","b":"2"}}`, "/v1/x/a,1,b,2", ""},
		{"path, an object exploded", parameter("path", `"explode":true,`+object), `{"p":{"a":"1","b":"2"}}`, "/v1/x/a=1,b=2", ""},
		{"path, label", parameter("path", `"style":"label",`+list), `{"p":["a","b"]}`, "/v1/x/.a,b", ""},
		{"path, matrix", parameter("path", `"style":"matrix",`+text), `{"p":"a"}`, "/v1/x/;p=a", ""},
		{"path, matrix exploded", parameter("path", `"style":"matrix","explode":true,`+list), `{"p":["a","b"]}`, "/v1/x/;p=a;p=b", ""},
		{"query", parameter("query", text), `{"p":"a b&c=d+é"}`, "/v1/x?p=a%20b%26c%3Dd%2B%C3%A9", ""},
		{"query, reserved", parameter("query", `"allowReserved":true,`+text), `{"p":"a/b?c&d=e#f"}`, "/v1/x?p=a/b?c%26d%3De%23f", ""},
		{"query, a large number", parameter("query", `"schema":{"type":"integer"}`), `{"p":9007199254740993}`, "/v1/x?p=9007199254740993", ""},
		{"query, a switch", parameter("query", `"schema":{"type":"boolean"}`), `{"p":false}`, "/v1/x?p=false", ""},
		{"query, empty", parameter("query", text), `{"p":""}`, "/v1/x?p=", ""},
		{"query, left out", parameter("query", text), `{}`, "/v1/x", ""},
		{"query, null", parameter("query", text), `{"p":null}`, "/v1/x", ""},
		{"query, a list", parameter("query", list), `{"p":["a","b c"]}`, "/v1/x?p=a&p=b%20c", ""},
		{"query, a list in one", parameter("query", `"explode":false,`+list), `{"p":["a","b,c"]}`, "/v1/x?p=a,b%2Cc", ""},
		{"query, spaces", parameter("query", `"style":"spaceDelimited","explode":false,`+list), `{"p":["a","b"]}`, "/v1/x?p=a%20b", ""},
		{"query, pipes", parameter("query", `"style":"pipeDelimited","explode":false,`+list), `{"p":["a","b"]}`, "/v1/x?p=a%7Cb", ""},
		{"query, an object", parameter("query", object), `{"p":{"a":"1","b":"2"}}`, "/v1/x?a=1&b=2", ""},
		{"query, an object in one", parameter("query", `"explode":false,`+object), `{"p":{"a":"1","b":"2"}}`, "/v1/x?p=a,1,b,2", ""},
		{"query, deepObject", parameter("query", `"style":"deepObject","explode":true,`+object), `{"p":{"a":"1","b":"2"}}`, "/v1/x?p[a]=1&p[b]=2", ""},
		{"query, JSON", parameter("query", `"content":{"application/json":{"schema":{"type":"object"}}}`), `{"p":{"a":[1]}}`, "/v1/x?p=%7B%22a%22%3A%5B1%5D%7D", ""},
		{"header", parameter("header", text), `{"p":"a b"}`, "/v1/x", ""},
		{"cookie", parameter("cookie", text), `{"p":"a b"}`, "/v1/x", ""},
		{"a query in the path", strings.Replace(parameter("query", text), `"/x"`, `"/x?action=go"`, 1), `{"p":"a"}`, "/v1/x?action=go&p=a", ""},
		{"a fragment in the path", strings.Replace(parameter("query", text), `"/x"`, `"/x#one"`, 1), `{"p":"a"}`, "/v1/x?p=a", ""},
		{"JSON", body("application/json", `{"type":"object","properties":{"n":{"type":"integer"}}}`, ""), `{"body":{"n":9007199254740993}}`, "/v1/x", `{"n":9007199254740993}`},
		{"JSON that is null", body("application/json", `{"nullable":true,"type":"object"}`, ""), `{"body":null}`, "/v1/x", `null`},
		{"a suffix +json", body("application/merge-patch+json", `{"type":"object"}`, ""), `{"body":{"a":null}}`, "/v1/x", `{"a":null}`},
		{"form", body("application/x-www-form-urlencoded", `{"type":"object","properties":{"a":{"type":"string"},"l":{"type":"array","items":{"type":"string"}}}}`, ""), `{"body":{"a":"1 &2","l":["x","y"]}}`, "/v1/x", `a=1%20%262&l=x&l=y`},
		{"form, an object in it", body("application/x-www-form-urlencoded", `{"type":"object","properties":{"o":{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"string"}}}}}}}`, `,"encoding":{"o":{"style":"deepObject","explode":true}}`), `{"body":{"o":{"a":{"b":"c"}}}}`, "/v1/x", `o[a][b]=c`},
		{"text", body("text/plain", `{"type":"string"}`, ""), `{"body":"a\nb"}`, "/v1/x", "a\nb"},
	} {
		t.Run(c.name, func(t *testing.T) {
			doc := []byte(`{"openapi":"3.0.3","info":{"title":"T","version":"1"},"servers":[{"url":"https://a.example"}],"paths":{` + c.path + `}}`)
			s := openapitest.New(t, doc, "/v1")
			call := connect(t, doc, s.URL+"/v1", nil)
			if _, err := call("op", c.args); err != nil {
				t.Fatal(err)
			}
			got := s.Requests()
			if len(got) != 1 {
				t.Fatalf("%d requests", len(got))
			}
			if got[0].URL != c.url || got[0].Body != c.body {
				t.Errorf("got  %s %q\nwant %s %q", got[0].URL, got[0].Body, c.url, c.body)
			}
			// A form of a path that few services have, and one which the judge does not read.
			if got[0].Err != nil && c.name != "path, matrix exploded" && c.name != "JSON that is null" {
				t.Errorf("by the document: %v", got[0].Err)
			}
		})
	}
}

// What an argument can't do: leave its segment, its header or its field.
func TestRefusedArguments(t *testing.T) {
	doc := []byte(`{"openapi":"3.0.3","info":{"title":"T","version":"1"},"servers":[{"url":"https://a.example"}],"paths":{"/x/{a}{b}/y":{"post":{"operationId":"op",
		"parameters":[{"name":"a","in":"path","required":true,"schema":{"type":"string"}},{"name":"b","in":"path","required":true,"schema":{"type":"string"}},{"name":"H","in":"header","schema":{"type":"string"}}],
		"requestBody":{"required":true,"content":{"application/octet-stream":{}}},"responses":{"200":{"description":"ok"}}}}}}`)
	s := openapitest.New(t, doc, "")
	call := connect(t, doc, s.URL, nil)
	for name, args := range map[string]string{
		"nothing in a path": `{"a":"","b":"c","body":"YQ=="}`, "up": `{"a":"..","b":"c","body":"YQ=="}`, "up by two": `{"a":".","b":".","body":"YQ=="}`,
		"none": `{"b":"c","body":"YQ=="}`, "a line break": `{"a":"a","b":"c","H":"x\r\nHost: evil","body":"YQ=="}`, "unknown": `{"a":"a","b":"c","z":1,"body":"YQ=="}`,
		"no body": `{"a":"a","b":"c"}`, "no base64": `{"a":"a","b":"c","body":"%%%"}`, "no object": `[1]`,
	} {
		if res, err := call("op", args); err == nil {
			t.Errorf("%s: %s", name, res)
		} else if f := wire.AsFault(err); f.Reach != wire.Never || f.Drop {
			t.Errorf("%s: it may have been sent: %v", name, err)
		}
	}
	if got := s.Requests(); len(got) > 0 {
		t.Errorf("sent %v", got)
	}
	if _, err := call("op", `{"a":"%2e%2e/","b":"..c","body":"YQ=="}`); err != nil || s.Requests()[0].URL != "/x/%252e%252e%2F..c/y" || s.Requests()[0].Body != "a" {
		t.Errorf("%v %+v", err, s.Requests())
	}
}

func TestMultipart(t *testing.T) {
	doc := []byte(`{"openapi":"3.0.3","info":{"title":"T","version":"1"},"servers":[{"url":"https://a.example"}],"paths":{"/x":{"post":{"operationId":"op","requestBody":{"content":{"multipart/form-data":{
		"schema":{"type":"object","properties":{"note":{"type":"string"},"meta":{"type":"object"},"photo":{"type":"string","format":"binary"},"more":{"type":"array","items":{"type":"string","format":"binary"}}}},
		"encoding":{"photo":{"contentType":"image/png, image/jpeg"}}}}},"responses":{"200":{"description":"ok"}}}}}}`)
	s := openapitest.New(t, doc, "")
	call := connect(t, doc, s.URL, nil)
	if _, err := call("op", `{"body":{"note":"n\r\n--x","meta":{"a":1},"photo":"aGVsbG8=","more":["YQ==","Yg=="]}}`); err != nil {
		t.Fatal(err)
	}
	got := s.Requests()[0]
	_, params, err := mime.ParseMediaType(got.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for r := multipart.NewReader(strings.NewReader(got.Body), params["boundary"]); ; {
		p, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, _ := io.ReadAll(p)
		parts = append(parts, fmt.Sprintf("%s|%s|%s|%s", p.FormName(), p.FileName(), p.Header.Get("Content-Type"), content))
	}
	if got, want := strings.Join(parts, ";"), "meta||application/json|{\"a\":1};more|more|application/octet-stream|a;more|more|application/octet-stream|b;note|||n\r\n--x;photo|photo|image/png|hello"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Registered headers win over arguments, and go to the registered host alone.
func TestHeadersAndRedirects(t *testing.T) {
	var elsewhere []http.Header
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		elsewhere = append(elsewhere, r.Header.Clone())
		fmt.Fprint(w, "from elsewhere")
	}))
	defer other.Close()
	doc := []byte(`{"openapi":"3.0.3","info":{"title":"T","version":"1"},"servers":[{"url":"https://a.example"}],"paths":{
		"/here":{"get":{"operationId":"here","parameters":[{"name":"X-Team","in":"header","schema":{"type":"string"}}]}},
		"/there":{"get":{"operationId":"there"},"post":{"operationId":"post"}},"/away":{"get":{"operationId":"away"}}}}`)
	s := openapitest.New(t, doc, "")
	s.Answer = func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/there":
			http.Redirect(w, r, "/here", http.StatusFound)
		case "/away":
			http.Redirect(w, r, other.URL+"/stolen", http.StatusTemporaryRedirect)
		default:
			fmt.Fprintf(w, "%s %s", r.Header.Get("Authorization"), r.Header.Get("X-Team"))
		}
	}
	call := connect(t, doc, s.URL, http.Header{"Authorization": {"Bearer k"}, "X-Team": {"ours"}})
	for _, c := range []struct{ tool, args, want string }{
		{"here", `{"X-Team":"theirs"}`, `"text":"Bearer k ours"`},
		{"there", `{}`, `"text":"Bearer k ours"`},
		{"away", `{}`, `"text":"from elsewhere"`},
		{"post", `{}`, `"text":"POST /there answered 302 Found to ` + s.URL + `/here, which is not followed"}],"isError":true`},
	} {
		res, err := call(c.tool, c.args)
		if err != nil || !strings.Contains(string(res), c.want) {
			t.Errorf("%s: %s %v, want %s", c.tool, res, err, c.want)
		}
	}
	if len(elsewhere) != 1 || elsewhere[0].Get("Authorization") != "" || elsewhere[0].Get("X-Team") != "" || elsewhere[0].Get("Referer") != "" {
		t.Errorf("another host got %v", elsewhere)
	}
}

func TestAnswers(t *testing.T) {
	doc := []byte(`{"openapi":"3.0.3","info":{"title":"T","version":"1"},"servers":[{"url":"https://a.example"}],"paths":{"/x":{"get":{"operationId":"get"},"post":{"operationId":"post"},"head":{"operationId":"head"}}}}`)
	png := "\x89PNG\r\n\x1a\n\x00"
	for _, c := range []struct {
		name, tool, media, body string
		status                  int
		header                  [2]string
		want                    string
		code                    store.Code
		reach                   wire.Reach
	}{
		{name: "an object", tool: "get", media: "application/json", body: ` {"n": 9007199254740993, "t":"<&>"} `, want: `{"content":[{"type":"text","text":"{\"n\":9007199254740993,\"t\":\"<&>\"}"}],"structuredContent":{"n":9007199254740993,"t":"<&>"}}`},
		{name: "a list", tool: "get", media: "application/hal+json; charset=utf-8", body: `[1]`, want: `{"content":[{"type":"text","text":"[1]"}],"structuredContent":{"items":[1]}}`},
		{name: "a bare value", tool: "get", media: "application/json", body: `"x"`, want: `{"content":[{"type":"text","text":"\"x\""}]}`},
		{name: "no JSON", tool: "get", media: "application/json", body: `{`, want: `{"content":[{"type":"text","text":"{"}]}`},
		{name: "nothing", tool: "get", status: 204, want: `{"content":[{"type":"text","text":"204 No Content"}]}`},
		{name: "made", tool: "post", status: 201, header: [2]string{"Location", "/x/1"}, want: `{"content":[{"type":"text","text":"201 Created"},{"type":"text","text":"Location: /x/1"}]}`},
		{name: "pages", tool: "get", media: "application/json", body: `[]`, header: [2]string{"Link", `</x?p=2>; rel="next"`}, want: `{"content":[{"type":"text","text":"[]"},{"type":"text","text":"Link: </x?p=2>; rel=\"next\""}],"structuredContent":{"items":[]}}`},
		{name: "text", tool: "get", media: "text/csv", body: "a,b\n", want: `{"content":[{"type":"text","text":"a,b\n"}]}`},
		{name: "Latin-1", tool: "get", media: "text/plain; charset=iso-8859-1", body: "caf\xe9", want: `{"content":[{"type":"text","text":"café"}]}`},
		{name: "XML", tool: "get", media: "application/xml", body: "<a/>", want: `{"content":[{"type":"text","text":"<a/>"}]}`},
		{name: "a picture", tool: "get", media: "image/png", body: png, want: `{"content":[{"type":"image","data":"` + base64.StdEncoding.EncodeToString([]byte(png)) + `","mimeType":"image/png"}]}`},
		{name: "bytes", tool: "get", media: "application/zip", body: "PK\x03\x04", want: `"resource":{"uri":"http://`},
		{name: "too many bytes", tool: "get", media: "application/zip", body: strings.Repeat("x", 5<<20), want: "over 4 MiB", reach: wire.Answered, code: "-"},
		{name: "too much text", tool: "get", media: "text/plain", body: strings.Repeat("x", 9<<20), want: "more than 8 MiB", reach: wire.Answered, code: "-"},
		{name: "too deep", tool: "get", media: "application/json", body: strings.Repeat("[", 70) + strings.Repeat("]", 70), want: "nests deeper", reach: wire.Answered, code: "-"},
		{name: "refused", tool: "get", status: 404, media: "application/problem+json", body: `{"detail":"no such x"}`, want: `{"content":[{"type":"text","text":"GET /x answered 404 Not Found: {\"detail\":\"no such x\"}"}],"structuredContent":{"detail":"no such x"},"isError":true}`},
		{name: "forbidden", tool: "post", status: 403, media: "text/plain", body: "not you", want: `POST /x answered 403 Forbidden: not you"}],"isError":true`},
		{name: "broken", tool: "post", status: 500, body: "boom", want: `POST /x answered 500 Internal Server Error: boom`},
		{name: "busy", tool: "get", status: 503, header: [2]string{"Retry-After", "60"}, want: `503 Service Unavailable; it may be tried again in 1m"`},
		{name: "too often", tool: "post", status: 429, body: "slow down", header: [2]string{"Retry-After", "90"}, want: "it answered 429 Too Many Requests: slow down; it may be tried again in 1m30s", code: store.CodeRateLimited, reach: wire.Never},
		{name: "no key", tool: "get", status: 401, body: "who?", want: "it answered 401 Unauthorized: who?; set a header", code: store.CodeUnavailable, reach: wire.Never},
		{name: "a gateway, for a change", tool: "post", status: 502, body: "<html>", want: "it answered 502 Bad Gateway", code: "-", reach: wire.Maybe},
		{name: "a gateway, for a look", tool: "get", status: 502, want: `GET /x answered 502 Bad Gateway"}],"isError":true`},
		{name: "see other", tool: "post", status: 303, header: [2]string{"Location", "/y"}, want: `{"content":[{"type":"text","text":"303 See Other"},{"type":"text","text":"Location: /y"}]}`},
		{name: "head", tool: "head", media: "text/plain", want: `200 OK"},{"type":"text","text":"Content-Type: text/plain`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openapitest.New(t, doc, "")
			s.Answer = func(w http.ResponseWriter, r *http.Request) {
				if c.media != "" {
					w.Header().Set("Content-Type", c.media)
				} else {
					w.Header()["Content-Type"] = nil
				}
				if c.header[0] != "" {
					w.Header().Set(c.header[0], c.header[1])
				}
				if c.status > 0 {
					w.WriteHeader(c.status)
				}
				_, _ = io.Copy(w, bytes.NewReader([]byte(c.body)))
			}
			res, err := connect(t, doc, s.URL, nil)(c.tool, `{}`)
			if c.code == "" {
				if err != nil || !strings.Contains(string(res), c.want) {
					t.Errorf("got %.300s %v, want %s", res, err, c.want)
				}
				return
			}
			f := wire.AsFault(err)
			if f == nil || f.Reach != c.reach || f.Drop || f.Code != c.code && c.code != "-" || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %.100s, %v (%+v), want %s", res, err, f, c.want)
			}
		})
	}
}

// A request that could not leave was not sent; one that may have is said to.
func TestHowFarItCame(t *testing.T) {
	doc := []byte(`{"openapi":"3.0.3","info":{"title":"T","version":"1"},"servers":[{"url":"https://a.example"}],"paths":{"/x":{"post":{"operationId":"post"}}}}`)
	gone := httptest.NewServer(nil)
	gone.Close()
	_, err := connect(t, doc, gone.URL, nil)("post", `{}`)
	if f := wire.AsFault(err); f == nil || f.Reach != wire.Never {
		t.Errorf("nobody there: %+v", f)
	}
	s := openapitest.New(t, doc, "")
	s.Answer = func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }
	_, err = connect(t, doc, s.URL, nil)("post", `{}`)
	if f := wire.AsFault(err); f == nil || f.Reach != wire.Maybe {
		t.Errorf("cut off: %+v", f)
	}
	if n := len(s.Requests()); n != 1 {
		t.Errorf("it was sent %d times", n)
	}
}

// The document is sent again only if it is another one, and read again then.
// A key in the query is a service's own: no argument replaces it or stands beside it,
// however it is written, and no other host gets it.
func TestQueryKeys(t *testing.T) {
	var elsewhere []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		elsewhere = append(elsewhere, r.URL.RawQuery+r.Referer())
	}))
	defer other.Close()
	doc := []byte(`{"openapi":"3.0.3","info":{"title":"T","version":"1"},"servers":[{"url":"https://a.example"}],"paths":{
		"/q":{"get":{"operationId":"q","parameters":[{"name":"key","in":"query","schema":{"type":"string"}},{"name":"o","in":"query","explode":true,"schema":{"type":"object"}},{"name":"n","in":"query","schema":{"type":"string"}}]}},
		"/fixed?k%65y=fixed":{"get":{"operationId":"fixed"}},"/away":{"get":{"operationId":"away"}}}}`)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, other.URL, http.StatusFound)
		}
		fmt.Fprint(w, r.URL.RawQuery, " ", len(r.Header["Query:key"]))
	}))
	defer s.Close()
	call := connect(t, doc, s.URL+"?key=base&v=1", http.Header{"query:key": {"a&b=c d"}})
	for _, c := range []struct{ tool, args, want string }{
		{"q", `{}`, "v=1&key=a%26b%3Dc%20d 0"},
		{"q", `{"key":"theirs","n":"1"}`, "v=1&n=1&key=a%26b%3Dc%20d 0"},
		{"q", `{"o":{"key":"theirs","m":"2"}}`, "v=1&m=2&key=a%26b%3Dc%20d 0"},
		{"q", `{"n":"x&key=theirs"}`, "v=1&n=x%26key%3Dtheirs&key=a%26b%3Dc%20d 0"},
		{"fixed", `{}`, "v=1&key=a%26b%3Dc%20d 0"},
		{"away", `{}`, ""},
	} {
		res, err := call(c.tool, c.args)
		var r struct{ Content []struct{ Text string } }
		if json.Unmarshal(res, &r) != nil || err != nil || c.want != "" && (len(r.Content) != 1 || r.Content[0].Text != c.want) {
			t.Errorf("%s %s: %s %v, want %s", c.tool, c.args, res, err, c.want)
		}
	}
	if len(elsewhere) != 1 || elsewhere[0] != "" {
		t.Errorf("another host got %q", elsewhere)
	}
	var fetched string
	docs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fetched = r.URL.RawQuery
		_, _ = w.Write(doc) // the reader may be gone
	}))
	defer docs.Close()
	if _, err := openapi.NewSource().Load(t.Context(), openapi.Spec{Document: docs.URL + "/d?x=1", Client: http.DefaultClient, Header: http.Header{"query:key": {"k"}}}); err != nil || fetched != "x=1&key=k" {
		t.Errorf("the document was fetched with %q: %v", fetched, err)
	}
}

func TestSource(t *testing.T) {
	doc := func(op string) []byte {
		return []byte(`{"openapi":"3.0.3","info":{"title":"T","version":"1"},"servers":[{"url":"/v1"}],"paths":{"/x":{"get":{"operationId":"` + op + `"}}}}`)
	}
	s := openapitest.New(t, doc("one"), "/v1")
	from := openapi.NewSource()
	spec := openapi.Spec{Document: s.URL + "/openapi.json", Client: http.DefaultClient}
	load := func(want string) *openapi.Document {
		t.Helper()
		d, err := from.Load(t.Context(), spec)
		if err != nil || d.Tools[0].Name != want {
			t.Fatalf("%v %v, want %s", d, err, want)
		}
		return d
	}
	first := load("one")
	if again := load("one"); again != first || s.Fetched() != 1 || first.Base.String() != s.URL+"/v1" {
		t.Errorf("fetched %d times, base %s", s.Fetched(), first.Base)
	}
	if err := s.Set(doc("two")); err != nil {
		t.Fatal(err)
	}
	load("two")
	spec.Allowed, spec.Allow = []string{"POST *"}, func(_, method, _ string) bool { return method == "POST" }
	if d, err := from.Load(t.Context(), spec); err == nil {
		t.Errorf("with another list of operations: %v", d)
	}
	path := filepath.Join(t.TempDir(), "doc.json")
	spec = openapi.Spec{Document: path, Base: first.Base}
	if _, err := from.Load(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no file: %v", err)
	}
	for _, op := range []string{"three", "fours"} {
		if err := os.WriteFile(path, doc(op), 0o600); err != nil {
			t.Fatal(err)
		}
		load(op)
	}
}

// A document of everything, called operation by operation with arguments made of the
// tools' own schemas.
func TestDouble(t *testing.T) {
	raw, err := os.ReadFile("testdata/everything.json")
	if err != nil {
		t.Fatal(err)
	}
	s := openapitest.New(t, raw, "/v1")
	base, _ := url.Parse(s.URL + "/v1")
	d, err := openapi.Read(raw, openapi.Options{Base: base})
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Tools) < 10 || len(d.Warnings) > 0 {
		t.Errorf("%d tools, warnings %q", len(d.Tools), d.Warnings)
	}
	call := connect(t, raw, s.URL+"/v1", nil)
	for _, tool := range d.Tools {
		for _, some := range []int{0, 20} {
			args, ok := openapitest.Sample(tool.InputSchema, some)
			if !ok {
				t.Fatalf("%s: no sample of %s", tool.Name, tool.InputSchema)
			}
			before := len(s.Requests())
			if _, err := call(tool.Name, string(args)); err != nil {
				t.Errorf("%s %s: %v", tool.Name, args, err)
				continue
			}
			got := s.Requests()[before]
			if got.Err != nil || got.Path != tool.Meta.Route.Path {
				t.Errorf("%s %s: %s %s %s: %v", tool.Name, args, got.Method, got.URL, got.Body, got.Err)
			}
		}
	}
}
