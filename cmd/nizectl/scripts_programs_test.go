package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// apicall is a program that comes over HTTP: apicall METHOD PATH [BODY], with the
// headers in API_HEADERS, one a line. It prints the status, the policy of a page and the answer.
func apicall() int {
	address, err := os.ReadFile(filepath.Join(os.Getenv("NIZE_DATA_DIR"), "nized.addr"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	body := strings.Join(os.Args[3:], " ")
	if name, ok := strings.CutPrefix(body, "@"); ok {
		text, err := os.ReadFile(name)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		body = os.ExpandEnv(string(text))
	}
	url := os.Args[2]
	if strings.HasPrefix(url, "/") {
		url = "http://" + strings.TrimSpace(string(address)) + url
	}
	req, err := http.NewRequest(os.Args[1], url, strings.NewReader(body))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	req.Header.Set("Content-Type", "application/json")
	for line := range strings.SplitSeq(os.Getenv("API_HEADERS"), ";") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			req.Header.Set(name, value)
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Printf("%d %s%s %s", resp.StatusCode, resp.Header.Get("X-Round-Id"), resp.Header.Get("Content-Security-Policy"), text)
	return 0
}
