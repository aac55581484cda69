package command

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	readyPatience = time.Second
	// readyBytes is as much of an answer as is read: whoever listens there need not be a member.
	readyBytes = 4 << 10
)

// NotReady asks the process at an endpoint why it serves nobody, and returns what it says; empty if it says nothing. A process
// that waits, because its disk is empty or for the members of a new cluster, answers HTTP and refuses gRPC.
func NotReady(ctx context.Context, endpoint string) string {
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+endpoint+"/readyz", nil)
	if err != nil {
		return ""
	}
	transport := &http.Transport{DisableKeepAlives: true}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusServiceUnavailable {
		return ""
	}
	var faults []string
	for lines := bufio.NewScanner(io.LimitReader(answer.Body, readyBytes)); lines.Scan(); {
		if fault, ok := strings.CutPrefix(lines.Text(), "[-]"); ok {
			faults = append(faults, strings.Map(printable, fault))
		}
	}
	return strings.Join(faults, "; ")
}

// printable drops what would move a terminal's cursor.
func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return -1
	}
	return r
}
