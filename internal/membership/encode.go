package membership

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/base/invariant"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
)

// maxJobBytes bounds what DecodeJob reads; a Job whose Spec is valid is far smaller.
const maxJobBytes = 1 << 20

// jobForm is the number of the form of a job: it rises with a field that an earlier build must not ignore.
const jobForm = 1

// Encode returns the replicated form of j: JSON that people can read, with ids in hex, as everywhere else.
func (j *Job) Encode() []byte {
	encoded, err := json.Marshal(j)
	invariant.True(err == nil, "job %v has a value that JSON cannot say: %v", j.ID, err)
	return encoded
}

// DecodeJob reads what Encode wrote. Fields that it does not know are a later build's, and are passed over; a later number of
// the form is level.ErrLater.
func DecodeJob(encoded []byte) (Job, error) {
	if len(encoded) > maxJobBytes {
		return Job{}, fmt.Errorf("decode job: %d bytes are more than %d", len(encoded), maxJobBytes)
	}
	var j Job
	if err := json.Unmarshal(encoded, &j); err != nil {
		return Job{}, fmt.Errorf("decode job: %w", err)
	}
	if j.ID == 0 {
		return Job{}, errors.New("decode job: it has no id")
	}
	return j, nil
}

func (id JobID) String() string { return strconv.FormatUint(uint64(id), 16) }

// MarshalText makes a JobID the hex number that people use: not every reader of JSON keeps 64 bits.
func (id JobID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (id *JobID) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 16, 64)
	*id = JobID(n)
	return err
}

// The words of package consensus have no JSON form of their own, and must not get one: etcd's backups hold member ids as
// JSON numbers. So they are wrapped here.
type (
	memberText   consensus.MemberID
	protocolText consensus.Protocol
	configText   consensus.ConfigID
)

func (id memberText) MarshalText() ([]byte, error) {
	return []byte(consensus.MemberID(id).String()), nil
}

func (id *memberText) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 16, 64)
	*id = memberText(n)
	return err
}

func (p protocolText) MarshalText() ([]byte, error) {
	return []byte(consensus.Protocol(p).String()), nil
}

func (p *protocolText) UnmarshalText(text []byte) error {
	protocol, ok := consensus.ParseProtocol(string(text))
	if !ok {
		return fmt.Errorf("protocol %q is unknown", text)
	}
	*p = protocolText(protocol)
	return nil
}

func (id configText) MarshalText() ([]byte, error) {
	return []byte(consensus.ConfigID(id).String()), nil
}

func (id *configText) UnmarshalText(text []byte) error {
	parts := strings.Split(string(text), ".")
	if len(parts) != 3 {
		return fmt.Errorf("configuration id %q is not INDEX.TERM.STAGE", text)
	}
	index, err1 := strconv.ParseUint(parts[0], 10, 64)
	term, err2 := strconv.ParseUint(parts[1], 10, 64)
	stage, err3 := strconv.ParseUint(parts[2], 10, 8)
	*id = configText{Index: consensus.Index(index), Term: consensus.Term(term), Stage: uint8(stage)}
	return errors.Join(err1, err2, err3)
}

// newcomerRecord is Newcomer, as JSON says it. The other records are the same for their types.
type newcomerRecord struct {
	ID       memberText `json:"id,omitzero"`
	Name     string     `json:"name,omitempty"`
	PeerURLs []string   `json:"peer_urls"`
	Learner  bool       `json:"learner,omitempty"`
	Cordoned bool       `json:"cordoned,omitempty"`
}

type updateRecord struct {
	ID       memberText `json:"id"`
	Name     string     `json:"name,omitempty"`
	PeerURLs []string   `json:"peer_urls"`
}

type specRecord struct {
	Kind     Kind             `json:"kind"`
	Add      []newcomerRecord `json:"add,omitempty"`
	Remove   []memberText     `json:"remove,omitempty"`
	Promote  []memberText     `json:"promote,omitempty"`
	Demote   []memberText     `json:"demote,omitempty"`
	Update   []updateRecord   `json:"update,omitempty"`
	Cordon   []memberText     `json:"cordon,omitempty"`
	Uncordon []memberText     `json:"uncordon,omitempty"`
	Drain    []memberText     `json:"drain,omitempty"`
	Protocol protocolText     `json:"protocol"`
	Expected configText       `json:"expected,omitzero"`
	After    []JobID          `json:"after,omitempty"`
	Force    string           `json:"force,omitempty"`

	JoinWithinMS int64 `json:"join_within_ms,omitempty"`
}

// MarshalJSON writes ids in hex and the protocol by name.
func (s Spec) MarshalJSON() ([]byte, error) {
	r := specRecord{
		Kind: s.Kind, Remove: convert[memberText](s.Remove), Promote: convert[memberText](s.Promote),
		Demote: convert[memberText](s.Demote), Drain: convert[memberText](s.Drain),
		Cordon: convert[memberText](s.Cordon), Uncordon: convert[memberText](s.Uncordon),
		Protocol: protocolText(s.Protocol), Expected: configText(s.Expected), After: s.After,
		Force: s.Force, JoinWithinMS: s.JoinWithinMS,
	}
	for i := range s.Add {
		n := &s.Add[i]
		r.Add = append(r.Add, newcomerRecord{memberText(n.ID), n.Name, n.PeerURLs, n.Learner, n.Cordoned})
	}
	for i := range s.Update {
		u := &s.Update[i]
		r.Update = append(r.Update, updateRecord{memberText(u.ID), u.Name, u.PeerURLs})
	}
	return json.Marshal(r)
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (s *Spec) UnmarshalJSON(encoded []byte) error {
	var r specRecord
	if err := json.Unmarshal(encoded, &r); err != nil {
		return err
	}
	*s = Spec{
		Kind: r.Kind, Remove: convert[consensus.MemberID](r.Remove), Promote: convert[consensus.MemberID](r.Promote),
		Demote: convert[consensus.MemberID](r.Demote), Drain: convert[consensus.MemberID](r.Drain),
		Cordon: convert[consensus.MemberID](r.Cordon), Uncordon: convert[consensus.MemberID](r.Uncordon),
		Protocol: consensus.Protocol(r.Protocol), Expected: consensus.ConfigID(r.Expected), After: r.After,
		Force: r.Force, JoinWithinMS: r.JoinWithinMS,
	}
	for i := range r.Add {
		n := &r.Add[i]
		s.Add = append(s.Add, Newcomer{consensus.MemberID(n.ID), n.Name, n.PeerURLs, n.Learner, n.Cordoned})
	}
	for i := range r.Update {
		u := &r.Update[i]
		s.Update = append(s.Update, consensus.Member{ID: consensus.MemberID(u.ID), Name: u.Name, PeerURLs: u.PeerURLs})
	}
	return nil
}

func convert[To, From ~uint64](list []From) []To {
	if len(list) == 0 {
		return nil
	}
	out := make([]To, len(list))
	for i := range list {
		out[i] = To(list[i])
	}
	return out
}

// jobFields is a Job without its methods.
type jobFields Job

type namedRecord struct {
	ID   memberText `json:"id"`
	Name string     `json:"name"`
}

// jobRecord hides the fields that consensus's words are in.
type jobRecord struct {
	Form int `json:"form"`
	*jobFields
	Names  []namedRecord `json:"names,omitempty"`
	Config configText    `json:"config,omitzero"`
	Final  configText    `json:"final,omitzero"`
}

// MarshalJSON writes ids as people do.
func (j Job) MarshalJSON() ([]byte, error) {
	r := jobRecord{Form: jobForm, jobFields: (*jobFields)(&j), Config: configText(j.Config), Final: configText(j.Final)}
	for _, n := range j.Names {
		r.Names = append(r.Names, namedRecord{memberText(n.ID), n.Name})
	}
	return json.Marshal(r)
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (j *Job) UnmarshalJSON(encoded []byte) error {
	r := jobRecord{jobFields: (*jobFields)(j)}
	if err := json.Unmarshal(encoded, &r); err != nil {
		return err
	}
	switch {
	case r.Form > jobForm:
		return fmt.Errorf("a job of form %d, this build knows %d: %w", r.Form, jobForm, level.ErrLater)
	case r.Form < jobForm:
		return fmt.Errorf("there is no job of form %d", r.Form)
	}
	j.Config, j.Final, j.Names = consensus.ConfigID(r.Config), consensus.ConfigID(r.Final), nil
	for _, n := range r.Names {
		j.Names = append(j.Names, Named{consensus.MemberID(n.ID), n.Name})
	}
	return nil
}
