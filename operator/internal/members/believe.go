package members

import (
	"fmt"
	"regexp"
	"strconv"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/printable"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/doctor"
)

// Bounds of what a member may answer: any process may have sent it. An honest answer of a cluster of nine members has a tenth.
const (
	mostAnswer  = command.MostAnswer // bytes
	mostParts   = 8 << 10            // messages and elements of lists
	mostHeaders = 64 << 10           // bytes; the text of an error is one
	mostMembers = 64
	mostJobs    = 64  // that have not ended
	mostAlarms  = 16  // and sentences about members without connections
	mostText    = 400 // characters
)

var (
	// goodName is that of a member which may be a part of a flag, of a list with commas and of a command that somebody pastes.
	goodName  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$`)
	goodEpoch = regexp.MustCompile(`^([0-9]{1,10}(-[0-9a-f]{1,32})?)?$`) // empty: a build that tells none
)

// codec decodes answers of members. Two bytes of one can become a message of hundreds: how many there are is counted before,
// and one answer of all clusters is decoded at a time.
type codec struct{ turn sync.Mutex }

// answers is the codec of the process: many clusters are looked at at once.
var answers = &codec{}

// Name implements encoding.Codec.
func (*codec) Name() string { return "proto" }

// Marshal implements encoding.Codec.
func (*codec) Marshal(v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is no message", v)
	}
	return proto.Marshal(m)
}

// Unmarshal implements encoding.Codec.
func (c *codec) Unmarshal(data []byte, v any) error {
	into, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is no message", v)
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	left := mostParts
	if err := count(data, into.ProtoReflect().Descriptor(), &left); err != nil {
		return err
	}
	switch m := into.(type) {
	case *quoratepb.Observation:
		defer renameObserved(m)
		return doctor.Decode(data, m)
	case *quoratepb.Collected:
		defer renameCollected(m)
		return doctor.Decode(data, m)
	case *quoratepb.DescribeResponse, *quoratepb.ListJobsResponse:
		defer plain(m.ProtoReflect())
	}
	return proto.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(data, into)
}

// count takes the messages and the elements of lists in an encoded message off what is left. More is an error.
func count(data []byte, of protoreflect.MessageDescriptor, left *int) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return protowire.ParseError(n)
		}
		size := protowire.ConsumeFieldValue(number, kind, data[n:])
		if size < 0 {
			return protowire.ParseError(size)
		}
		value := data[n : n+size]
		data = data[n+size:]
		field := of.Fields().ByNumber(number)
		if field == nil {
			continue // it is dropped
		}
		isMessage := field.Kind() == protoreflect.MessageKind || field.Kind() == protoreflect.GroupKind
		if isMessage || field.IsList() {
			*left--
		}
		if kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(value)
			switch {
			case isMessage && *left >= 0:
				if err := count(value, field.Message(), left); err != nil {
					return err
				}
			case field.IsList() && field.Kind() != protoreflect.StringKind && field.Kind() != protoreflect.BytesKind:
				for _, b := range value { // numbers, of which each ends with such a byte
					if b < 0x80 {
						*left--
					}
				}
			}
		}
		if *left < 0 {
			return fmt.Errorf("its answer has more than %d parts, and is not read", mostParts)
		}
	}
	return nil
}

// plain makes all texts short and safe to print.
func plain(m protoreflect.Message) {
	text := func(v protoreflect.Value) protoreflect.Value {
		return protoreflect.ValueOfString(printable.Text(v.String(), mostText))
	}
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case field.IsList():
			for i := range v.List().Len() {
				switch field.Kind() {
				case protoreflect.MessageKind:
					plain(v.List().Get(i).Message())
				case protoreflect.StringKind:
					v.List().Set(i, text(v.List().Get(i)))
				}
			}
		case field.Kind() == protoreflect.MessageKind:
			plain(v.Message())
		case field.Kind() == protoreflect.StringKind:
			m.Set(field, text(v))
		}
		return true
	})
}

// nameFor is the name of a member, or its id if the name may be no part of a flag or of a command: `quorate` takes either.
func nameFor(name string, id uint64) string {
	if name == "" || goodName.MatchString(name) {
		return name
	}
	return strconv.FormatUint(id, 16)
}

func renameObserved(o *quoratepb.Observation) {
	o.Name = nameFor(o.GetName(), o.GetMemberId())
	for _, m := range o.GetConfig().GetMembers() {
		m.Name = nameFor(m.GetName(), m.GetId())
	}
}

func renameCollected(c *quoratepb.Collected) {
	for _, m := range c.GetMembers() {
		m.Name = nameFor(m.GetName(), m.GetId())
		if o := m.GetObservation(); o != nil {
			renameObserved(o)
		}
	}
}

// believable returns what a member says of its cluster if that can be so, without what the operator does not read.
func believable(c *quoratepb.Cluster) (*quoratepb.Cluster, error) {
	switch {
	case c == nil:
		return nil, nil
	case len(c.GetMembers()) > mostMembers:
		return nil, fmt.Errorf("it tells of %d members, and at most %d are believed", len(c.GetMembers()), mostMembers)
	case !goodEpoch.MatchString(c.GetEpoch()):
		return nil, fmt.Errorf("it tells the epoch %q, which is none", c.GetEpoch())
	}
	c.Alarms = c.Alarms[:min(len(c.Alarms), mostAlarms)]
	seen := map[uint64]bool{}
	for _, m := range c.GetMembers() {
		if seen[m.GetId()] {
			return nil, fmt.Errorf("it tells of two members with the id %x", m.GetId())
		}
		seen[m.GetId()] = true
		m.Name = nameFor(m.GetName(), m.GetId())
		m.PeerUrls, m.ClientUrls, m.FormerUrls = nil, nil, nil
	}
	return c, nil
}

// unended are the jobs that have not ended, if they can be so.
func unended(all []*quoratepb.Job) (jobs []*quoratepb.Job, err error) {
	for _, job := range all {
		switch job.GetState() {
		case "done", "failed", "cancelled":
			continue
		}
		for i, add := range job.GetSpec().GetAdd() {
			if !goodName.MatchString(add.GetName()) {
				id := uint64(0)
				if i < len(job.GetNewcomers()) {
					id = job.GetNewcomers()[i]
				}
				add.Name = strconv.FormatUint(id, 16)
			}
		}
		jobs = append(jobs, job) // also one in a state that this build does not know
	}
	if len(jobs) > mostJobs {
		return nil, fmt.Errorf("it tells of %d jobs that have not ended, and at most %d are believed", len(jobs), mostJobs)
	}
	return jobs, nil
}

// said is an error with a short text that is safe to print: a member may have written it.
type said struct{ error }

func (s said) Error() string { return printable.Text(s.error.Error(), mostText) }
func (s said) Unwrap() error { return s.error }
