//go:build !linux

package postgres

import "syscall"

func setUserTimeout(string, string, syscall.RawConn) error { return nil }
