package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/rpc/etcderr"
)

// check is one named question about this member's health.
type check struct {
	name string
	ask  func(context.Context, *Services) error
	// patience is for how long the member may hang before the check fails without being asked: it would hang, too.
	patience time.Duration
	// How it went so far: for the metrics.
	passed, failed atomic.Uint64
	lastFailed     atomic.Bool
}

// checkGroup is the checks behind /livez or /readyz.
type checkGroup struct {
	name   string
	checks []*check
}

// A member that hangs for readyPatience gets no more requests; who hangs for alivePatience may be started again, which
// helps against a deadlock but would only harm a member whose disk is slow.
const (
	readyPatience = 10 * time.Second
	alivePatience = time.Minute
)

func newCheckGroups() []*checkGroup {
	return []*checkGroup{
		{name: "livez", checks: []*check{
			{name: "progress", ask: hangsNot, patience: alivePatience},
			{name: "serializable_read", ask: readsLocally, patience: alivePatience},
		}},
		{name: "readyz", checks: []*check{
			{name: "progress", ask: hangsNot, patience: readyPatience},
			{name: "data_corruption", ask: isIntact, patience: readyPatience},
			{name: "serializable_read", ask: readsLocally, patience: readyPatience},
			{name: "linearizable_read", ask: readsEverywhere, patience: readyPatience},
			{name: "non_learner", ask: isNoLearner, patience: readyPatience},
		}},
	}
}

// hangsNot asks nothing: its patience is the question.
func hangsNot(context.Context, *Services) error { return nil }

func readsLocally(_ context.Context, s *Services) error {
	machine, release := s.options.Member.Machine()
	defer release()
	_, _, err := machine.Store().RangeUncounted(&kv.RangeOp{Key: []byte{0}, KeysOnly: true, Limit: 1}, nil)
	return err
}

func readsEverywhere(ctx context.Context, s *Services) error {
	if err := s.options.Member.ReadIndex(ctx); err != nil {
		return etcderr.Text(err)
	}
	return readsLocally(ctx, s)
}

func isIntact(_ context.Context, s *Services) error {
	if s.options.Member.Corrupt() {
		return errors.New("alarm activated: CORRUPT")
	}
	return nil
}

func isNoLearner(_ context.Context, s *Services) error {
	if s.gate.isLearner() {
		return errors.New("not supported for learner")
	}
	return nil
}

func (s *Services) addHealth(mux *http.ServeMux) {
	mux.Handle("/health", onlyGet(s.serveHealth))
	for _, group := range s.checks {
		root := "/" + group.name
		mux.Handle(root, onlyGet(func(w http.ResponseWriter, r *http.Request) {
			excluded := make(map[string]bool)
			for _, name := range r.URL.Query()["exclude"] {
				excluded[name] = true
			}
			s.serveChecks(w, r, group.checks, excluded)
		}))
		for _, c := range group.checks {
			mux.Handle(root+"/"+c.name, onlyGet(func(w http.ResponseWriter, r *http.Request) {
				s.serveChecks(w, r, []*check{c}, nil)
			}))
		}
	}
}

// serveChecks runs checks and says which failed; those that passed are named too if the caller wants it verbose.
func (s *Services) serveChecks(w http.ResponseWriter, r *http.Request, checks []*check, excluded map[string]bool) {
	var report strings.Builder
	healthy := true
	for _, c := range checks {
		if excluded[c.name] {
			continue
		}
		err := s.options.Stalled(c.patience)
		if err == nil {
			err = c.ask(r.Context(), s)
		}
		c.lastFailed.Store(err != nil)
		if err != nil {
			c.failed.Add(1)
			healthy = false
			fmt.Fprintf(&report, "[-]%s failed: %v\n", c.name, err)
			continue
		}
		c.passed.Add(1)
		fmt.Fprintf(&report, "[+]%s ok\n", c.name)
	}
	if !healthy {
		http.Error(w, report.String(), http.StatusServiceUnavailable)
		s.options.Logger.Warn("health check failed", "path", r.URL.Path, "reason", report.String())
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if _, verbose := r.URL.Query()["verbose"]; verbose {
		s.write(w, []byte(report.String()))
	}
	s.write(w, []byte("ok\n"))
}

// serveHealth is etcd's older endpoint: no alarm, a leader, and a read that works.
func (s *Services) serveHealth(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	excluded := make(map[string]bool)
	for _, name := range query["exclude"] {
		excluded[name] = true
	}
	reason := s.unhealthyBecause(r.Context(), excluded, query.Get("serializable") == "true")
	body, err := json.Marshal(struct {
		Health string `json:"health"`
		Reason string `json:"reason"`
	}{fmt.Sprint(reason == ""), reason})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if reason != "" {
		s.stats.healthFailures.Add(1)
		http.Error(w, string(body), http.StatusServiceUnavailable)
		s.options.Logger.Warn("health check failed", "path", r.URL.Path, "reason", reason)
		return
	}
	s.stats.healthSuccess.Add(1)
	s.write(w, body)
}

func (s *Services) unhealthyBecause(ctx context.Context, excluded map[string]bool, serializable bool) string {
	if err := s.options.Stalled(readyPatience); err != nil {
		return "NO PROGRESS:" + err.Error()
	}
	for _, alarm := range s.alarms() {
		name := pb.AlarmType(alarm.Kind).String()
		if !excluded[name] {
			return "ALARM " + name
		}
	}
	if serializable {
		if err := readsLocally(ctx, s); err != nil {
			return fmt.Sprintf("RANGE ERROR:%s", err)
		}
		return ""
	}
	if s.options.Member.Leader() == consensus.NoMember {
		return "RAFT NO LEADER"
	}
	if err := readsEverywhere(ctx, s); err != nil {
		return fmt.Sprintf("RANGE ERROR:%s", err)
	}
	return ""
}
