package slacktest

import "nize/bots/chattest"

// Running returns a Slack that serves on loopback until the test ends.
func Running(t chattest.Tester, o Options) *Server {
	t.Helper()
	s := New(o)
	if err := s.Start(nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}
