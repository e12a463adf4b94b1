package api

import "testing"

func TestDefaultPlaces(t *testing.T) {
	type env map[string]string
	for name, test := range map[string]struct {
		env          env
		uid          int
		socket, data string
	}{
		"nothing but a home": {env{"HOME": "/home/a"}, 1000, "/home/a/.local/share/nize/nized.sock", "/home/a/.local/share/nize"},
		"a session":          {env{"HOME": "/home/a", "XDG_RUNTIME_DIR": "/run/user/1000"}, 1000, "/run/user/1000/nize/nized.sock", "/home/a/.local/share/nize"},
		"XDG data":           {env{"HOME": "/home/a", "XDG_DATA_HOME": "/d"}, 1000, "/d/nize/nized.sock", "/d/nize"},
		"relative XDG":       {env{"HOME": "/home/a", "XDG_DATA_HOME": "d", "XDG_RUNTIME_DIR": "r"}, 1000, "/home/a/.local/share/nize/nized.sock", "/home/a/.local/share/nize"},
		"NIZE_SOCKET":        {env{"HOME": "/home/a", "NIZE_SOCKET": "/s", "NIZE_DATA_DIR": "/d", "XDG_RUNTIME_DIR": "/run/user/1"}, 1000, "/s", "/d"},
		"NIZE_DATA_DIR":      {env{"HOME": "/home/a", "NIZE_DATA_DIR": "/d", "XDG_RUNTIME_DIR": "/run/user/1"}, 1000, "/d/nized.sock", "/d"},
		"root in a unit":     {env{"INVOCATION_ID": "1"}, 0, "/run/nize/nized.sock", "/var/lib/nize"},
		"root logged in":     {env{"HOME": "/root", "INVOCATION_ID": "1", "XDG_RUNTIME_DIR": "/run/user/0"}, 0, "/run/user/0/nize/nized.sock", "/root/.local/share/nize"},
		"directories of a unit": {env{"INVOCATION_ID": "1", "RUNTIME_DIRECTORY": "/run/x:/run/y", "STATE_DIRECTORY": "/var/lib/x"}, 990,
			"/run/x/nized.sock", "/var/lib/x"},
	} {
		t.Run(name, func(t *testing.T) {
			get := func(k string) string { return test.env[k] }
			if got := defaultSocket(get, test.uid); got != test.socket {
				t.Errorf("socket %s, want %s", got, test.socket)
			}
			if got := defaultDataDir(get, test.uid); got != test.data {
				t.Errorf("data %s, want %s", got, test.data)
			}
		})
	}
}
