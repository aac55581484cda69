package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/quorate/quorate/internal/ctl/command"
)

// Commands that read or write the data of a stopped member have no place among ctl's, which know members only as clients do.

// errUsage is a command line that makes no sense.
var errUsage = errors.New("usage")

// offlineStatus prints the error of a command, and returns its exit status.
func offlineStatus(name string, err error, s command.Streams) int {
	switch {
	case err == nil:
		return command.StatusOK
	case errors.Is(err, errUsage):
		text := strings.TrimPrefix(err.Error(), errUsage.Error()+": ")
		fmt.Fprintf(s.Err, "quorate: %s; see quorate %s --help\n", text, name)
		return command.StatusUsage
	}
	fmt.Fprintf(s.Err, "quorate: %v\n", err)
	return command.StatusRefused
}

// peerFiles are what is shown to other members, and what they must show.
type peerFiles struct{ cert, key, roots string }

func (f *peerFiles) define(flags *pflag.FlagSet) {
	flags.StringVar(&f.cert, "peer-cert-file", "", "certificate to show to other members")
	flags.StringVar(&f.key, "peer-key-file", "", "its key")
	flags.StringVar(&f.roots, "peer-trusted-ca-file", "", "authorities of the other members; none: any is taken for real")
}

// line are the flags that were given, for a command line that is printed.
func (f *peerFiles) line() []string {
	return given("--peer-cert-file", f.cert, "--peer-key-file", f.key, "--peer-trusted-ca-file", f.roots)
}

// given returns of flags and their values, in turn, those that have a value.
func given(pairs ...string) (words []string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			words = append(words, pairs[i], pairs[i+1])
		}
	}
	return words
}

// dialTLS trusts any process unless it is told which: an impostor could only keep the command from being done.
func (f *peerFiles) dialTLS() (*tls.Config, error) {
	config := &tls.Config{InsecureSkipVerify: f.roots == "", MinVersion: tls.VersionTLS12}
	if f.roots != "" {
		pem, err := os.ReadFile(f.roots)
		if err != nil {
			return nil, fmt.Errorf("--peer-trusted-ca-file: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--peer-trusted-ca-file %s holds no certificate", f.roots)
		}
	}
	if f.cert != "" || f.key != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, fmt.Errorf("--peer-cert-file and --peer-key-file: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// confirm wants the member's name typed, or --yes.
func confirm(s command.Streams, yes bool, name, verb string) error {
	if yes {
		return nil
	}
	if !s.Terminal {
		return errors.New("nothing was changed: repeat this with --yes to do it")
	}
	fmt.Fprintf(s.Out, "\nType the name of the member to %s, %s, to go on: ", verb, name)
	line, _ := bufio.NewReader(s.In).ReadString('\n') // what could not be read was not typed
	if strings.TrimSpace(line) != name {
		return errors.New("that is not the name: nothing was changed")
	}
	return nil
}
