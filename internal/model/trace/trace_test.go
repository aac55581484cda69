package trace_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/model/trace"
)

const opening = `
{"action":"begin","voters":[1,2,3]}
{"action":"start","member":1,"base":[0,0]}
{"action":"start","member":2,"base":[0,0]}
{"action":"start","member":3,"base":[0,0]}
{"action":"persist","member":1,"term":1,"vote":1}
{"action":"persist","member":2,"term":1,"vote":1}
`

const elected = opening + `
{"action":"grant","member":2,"to":1,"term":1}
{"action":"persist","member":1,"term":1,"vote":1,"entries":[[1,1]]}
`

// Ensure that each rule of the mapping is compared, by one trace that keeps the rule and one that breaks it.
func TestCheck_rules(t *testing.T) {
	for _, tc := range []struct{ name, lines, want string }{
		{"an election", elected, ""},
		{"no votes", opening + `{"action":"persist","member":1,"term":1,"vote":1,"entries":[[1,1]]}`, "with 1 votes"},
		{"a term falls", elected + `{"action":"persist","member":2,"term":0}`, "falls"},
		{"a commit by a majority", elected + `
			{"action":"persist","member":2,"term":1,"vote":1,"entries":[[1,1]]}
			{"action":"acknowledge","member":2,"to":1,"term":1,"match":[1,1]}
			{"action":"commit","member":1,"term":1,"index":1}`, ""},
		{"a commit by one", elected + `{"action":"commit","member":1,"term":1,"index":1}`, "majority"},
		{"a commit that a follower infers, by the leader's disk and its own", elected + `
			{"action":"persist","member":2,"term":1,"vote":1,"entries":[[1,1]]}
			{"action":"commit","member":2,"term":1,"index":1}`, ""},
		{"the leader's commit by a disk of which it has not heard", elected + `
			{"action":"persist","member":2,"term":1,"vote":1,"entries":[[1,1]]}
			{"action":"commit","member":1,"term":1,"index":1}`, "majority"},
		{"an entry that nobody made", elected + `{"action":"persist","member":2,"term":1,"vote":1,"entries":[[1,1],[2,1]]}`,
			"not in the log"},
		{"a promise that a restart forgets", elected + `
			{"action":"persist","member":2,"term":1,"vote":1,"entries":[[1,1]]}
			{"action":"acknowledge","member":2,"to":1,"term":1,"match":[1,1]}
			{"action":"start","member":2,"term":1,"vote":1,"base":[0,0]}`, "its log ends at 0"},
		{"a vote that a restart forgets", elected + `{"action":"start","member":2,"term":1,"base":[0,0]}`, "starts with the vote"},
		{"a decision", elected + `
			{"action":"answer","member":1,"term":1,"proposal":"p","revision":2}
			{"action":"accept","member":2,"term":1,"proposal":"p","revision":2}
			{"action":"accept","member":3,"term":1,"proposal":"p","revision":2}
			{"action":"decide","member":2,"proposal":"p","revision":2}`, ""},
		{"a decision by two of three", elected + `
			{"action":"answer","member":1,"term":1,"proposal":"p","revision":2}
			{"action":"accept","member":2,"term":1,"proposal":"p","revision":2}
			{"action":"decide","member":2,"proposal":"p","revision":2}`, "superquorum"},
		{"a change of members", elected + `{"action":"persist","member":2,"term":1,"vote":1,"changes":true}`, "does not map"},
		{"no JSON", opening + "x", "invalid"},
	} {
		steps, err := trace.Check(strings.NewReader(tc.lines))
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %d steps, got %v, want %q", tc.name, steps, err, tc.want)
		}
		if errors.Is(err, trace.ErrUnmapped) != (tc.name == "a change of members") {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}
