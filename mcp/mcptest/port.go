package mcptest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// keepPort binds a socket to the address of a listener that was just closed, without
// listening. Tests of other packages run concurrently, and without this one of them could
// get the port.
func keepPort(at net.Addr) (*os.File, error) {
	tcp, ok := at.(*net.TCPAddr)
	if !ok || tcp.IP.To4() == nil {
		return nil, fmt.Errorf("%v is no address of IPv4", at)
	}
	syscall.ForkLock.RLock() // so that no child inherits it
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("making a socket: %w", err)
	}
	f := os.NewFile(uintptr(fd), "kept port")
	// Earlier connections may still be in TIME_WAIT.
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		f.Close()
		return nil, fmt.Errorf("making a socket: %w", err)
	}
	// A child that another test is starting also has the listener open until it executes
	// its program.
	for end := time.Now().Add(time.Minute); ; <-time.After(time.Millisecond) {
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Port: tcp.Port, Addr: [4]byte(tcp.IP.To4())})
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(end) {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("keeping %v: %w", at, err)
	}
	return f, nil
}

// listenOn makes a kept socket listen, and takes ownership of it.
func listenOn(f *os.File) (net.Listener, error) {
	defer f.Close() // the listener has its own
	if err := syscall.Listen(int(f.Fd()), syscall.SOMAXCONN); err != nil {
		return nil, fmt.Errorf("listening again: %w", err)
	}
	return net.FileListener(f)
}
