package ctl

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/ctl/command"
)

const (
	metricsTimeout = 2 * time.Second
	maxMetrics     = 8 << 20
)

// tripMetric is how a member tells, among its metrics, how far another one is.
var tripMetric = regexp.MustCompile(`^quorate_peer_round_trip_seconds\{Remote="([0-9a-f]+)"\} (\S+)$`)

// addTrips asks each member how far the others are. Servers that do not tell, such as an etcd, lack them.
func addTrips(ctx context.Context, rows []latencyRow) {
	names := map[string]string{}
	for _, r := range rows {
		names[r.ID] = r.Name
	}
	ctx, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	for i := range rows {
		r := &rows[i]
		if r.ID == "" || strings.HasPrefix(r.Endpoint, "unix:") {
			continue
		}
		for id, ms := range askTrips(ctx, r.Endpoint) {
			if name := names[id]; name != "" {
				if r.Trips == nil {
					r.Trips = map[string]float64{}
				}
				r.Trips[name] = ms
			}
		}
	}
}

// askTrips returns round trips in milliseconds by the ids of the members; none if the server does not tell.
func askTrips(ctx context.Context, endpoint string) map[string]float64 {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+endpoint+"/metrics", nil)
	if err != nil {
		return nil
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil
	}
	defer answer.Body.Close()
	return readTrips(answer.Body)
}

func readTrips(metrics io.Reader) map[string]float64 {
	trips := map[string]float64{}
	lines := bufio.NewScanner(io.LimitReader(metrics, maxMetrics))
	for lines.Scan() {
		found := tripMetric.FindStringSubmatch(lines.Text())
		if found == nil {
			continue
		}
		if seconds, err := strconv.ParseFloat(found[2], 64); err == nil && seconds > 0 { // zero: not measured yet
			trips[found[1]] = float64(time.Duration(seconds*float64(time.Second)).Microseconds()) / 1000
		}
	}
	return trips
}

// tripTable shows how far the members are from each other; nil if none told.
func tripTable(rows []latencyRow) *command.Table {
	t, head, known := &command.Table{}, []string{""}, false
	for _, r := range rows {
		head = append(head, r.Name)
	}
	t.Add(head...)
	for _, from := range rows {
		cells := []string{from.Name}
		for _, to := range rows {
			cell := unknownCell
			if ms, told := from.Trips[to.Name]; told {
				cell, known = millisText(ms), true
			}
			cells = append(cells, cell)
		}
		t.Add(cells...)
	}
	if !known {
		return nil
	}
	return t
}
