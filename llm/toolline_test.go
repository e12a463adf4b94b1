package llm

import "testing"

// TestPlainly: a person reads why, and not what is for the model alone.
func TestPlainly(t *testing.T) {
	for in, want := range map[string]string{
		`Nothing was done: tool "box:x" not found; search with discover_tools (not_found).`: `tool "box:x" not found`,
		`The call failed: box has been unreachable for 5m`:                                  `box has been unreachable for 5m`,
		`The tool reported an error: no (such) file.`:                                       `The tool reported an error: no (such) file.`,
		`Nothing was done: nize had an internal error.`:                                     `nize had an internal error`,
		checkArgs(`[1]`): `The arguments were not a JSON object`,
		unknownFunction("run", []string{"discover_tools"}):     `There is no function "run"`,
		`Nobody approved the call in time, so it was not run.`: `Nobody approved the call in time, so it was not run.`,
	} {
		if got := plainFailure(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}
