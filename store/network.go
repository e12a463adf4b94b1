package store

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"
)

// NetworkError returns a network error with a message for people that omits the requested
// address, which may contain a key. [errors.Is] and [errors.As] match the result as they
// match err. Errors that don't come from the network are returned unchanged. The message is
// part of an English sentence.
func NetworkError(err error) error {
	var asked *url.Error
	if errors.As(err, &asked) {
		err = asked.Err
	}
	if said := networkText(err); said != nil {
		return Mark(said, err)
	}
	return err
}

func networkText(err error) error {
	at := "the address"
	var op *net.OpError
	if errors.As(err, &op) && op.Addr != nil {
		at = op.Addr.String()
	}
	var dns *net.DNSError
	var untrusted *tls.CertificateVerificationError
	var slow net.Error
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Errorf("there is no host %s", dns.Name)
	case errors.As(err, &dns):
		return fmt.Errorf("the host name %s can't be looked up now", dns.Name)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing listens at %s", at)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return fmt.Errorf("there is no way to %s from here", at)
	case errors.As(err, &untrusted):
		return fmt.Errorf("its certificate is not accepted (%s)", untrusted.Err)
	case errors.Is(err, context.Canceled):
		return nil
	case errors.As(err, &slow) && slow.Timeout():
		return errors.New("no answer came in time")
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the connection broke off")
	}
	return nil
}
