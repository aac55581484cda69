package main

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/base/typed"
	"github.com/quorate/quorate/internal/config"
)

// Ensure that the server takes the command that is printed for a newcomer: it listens at addresses only, and its URL may have the
// name of a host.
func TestStartOfNewcomer(t *testing.T) {
	for _, urls := range [][]string{{"http://10.0.4.9:2380"}, {"http://m4.example.com:2380"}, {"http://localhost:1", "http://b:2"}} {
		line := typed.Start("m4", "http://10.0.0.1:2380", urls)
		c, err := config.Load(strings.Fields(line)[1:], nil)
		if err == nil {
			err = c.Validate()
		}
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}
