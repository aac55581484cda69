package kv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/quorate/quorate/internal/base/invariant"
	"github.com/quorate/quorate/internal/base/level"
)

// Binary form of a Command, the payload of a consensus EntryCommand:
//
//	byte 0   format (1; 2 if it has credentials)
//	byte 1   kind, one of the command numbers below
//	byte 2.. the fields of that kind in the order of its struct
//	end      the credentials, if any: a byte of flags, user and revision
//
// Numbers are varints: unsigned for revisions, counts and lengths, zig-zag for leases, limits and numbers to compare
// with. Byte strings carry their length. Booleans of one struct share a byte of flags. A decoder takes every byte or
// fails, and what it returns aliases its input.

// formatCommand and formatResult are raised when a change cannot be expressed by a new kind. A Result from which values are
// left out has a format of its own. An addition to a command, a flag or field too, needs a new format or kind, and its feature
// level in Needs. So does another bound in decoding or applying.
const (
	formatCommand = 1
	formatSigned  = 2
	formatResult  = 1
	formatLeft    = 2
)

// MaxTxnDepth bounds how deep transactions may nest in the binary form, so that decoding cannot exhaust the stack.
const MaxTxnDepth = 512

const (
	commandPut           = 1
	commandDelete        = 2
	commandTxn           = 3
	commandCompact       = 4
	commandLeaseGrant    = 5
	commandLeaseRevoke   = 6
	commandAlarm         = 7
	commandPublish       = 8
	commandSessionOpen   = 9
	commandSessionRetire = 10
	commandRange         = 11 // only inside a Txn
	commandJob           = 12
	commandAuth          = 13
	commandRaise         = 14
	commandLevelPolicy   = 15
	commandSoak          = 16
	commandMoment        = 17
	commandAudit         = 18
	commandLimit         = 19
	commandBackup        = 20

	// lastNoOperation is the last kind that the first release knew: inside a transaction it is damage where it is no operation,
	// as there, and a later kind was written by a later build, though this one knows it as a command.
	lastNoOperation = commandSoak
)

// errMalformed is the cause inside ErrBadCommand and ErrBadResult.
var errMalformed = errors.New("malformed bytes")

// Append appends the binary form of c to dst. It panics if c does not have exactly one pointer set: a fault of the caller.
func (c *Command) Append(dst []byte) []byte {
	if c.By.IsZero() {
		return c.appendOperation(dst, formatCommand)
	}
	return appendCredentials(c.appendOperation(dst, formatSigned), c.By)
}

func (c *Command) appendOperation(dst []byte, format byte) []byte {
	if c.Put != nil {
		dst = slices.Grow(dst, len(c.Put.Key)+len(c.Put.Value)+maxPutOverhead)
	}
	dst = append(dst, format)
	switch {
	case c.Put != nil:
		return c.Put.append(append(dst, commandPut))
	case c.Delete != nil:
		return c.Delete.append(append(dst, commandDelete))
	case c.Txn != nil:
		return c.Txn.append(append(dst, commandTxn))
	case c.Compact != nil:
		return appendRevision(append(dst, commandCompact), c.Compact.Revision)
	case c.LeaseGrant != nil:
		dst = binary.AppendVarint(append(dst, commandLeaseGrant), int64(c.LeaseGrant.ID))
		return binary.AppendVarint(dst, c.LeaseGrant.TTLSeconds)
	case c.LeaseRevoke != nil:
		dst = binary.AppendVarint(append(dst, commandLeaseRevoke), int64(c.LeaseRevoke.ID))
		return binary.AppendUvarint(dst, c.LeaseRevoke.Term)
	case c.Alarm != nil:
		dst = append(dst, commandAlarm, flag(c.Alarm.Activate, 1), byte(c.Alarm.Kind))
		return binary.AppendUvarint(dst, c.Alarm.Member)
	case c.Publish != nil:
		return c.Publish.append(append(dst, commandPublish))
	case c.SessionOpen != nil:
		return c.SessionOpen.append(append(dst, commandSessionOpen))
	case c.SessionRetire != nil:
		dst = binary.AppendUvarint(append(dst, commandSessionRetire), c.SessionRetire.Member)
		return binary.AppendUvarint(dst, c.SessionRetire.Number)
	case c.Job != nil:
		return c.Job.append(append(dst, commandJob))
	case c.Auth != nil:
		return appendChange(append(dst, commandAuth), c.Auth)
	case c.Raise != nil:
		dst = append(dst, commandRaise, flag(c.Raise.Finalize, 1), byte(c.Raise.Level))
		return c.Raise.Of.append(dst)
	case c.LevelPolicy != nil:
		return c.LevelPolicy.append(append(dst, commandLevelPolicy))
	case c.Soak != nil:
		dst = append(dst, commandSoak, byte(c.Soak.Level))
		return c.Soak.Of.append(binary.AppendUvarint(dst, uint64(max(c.Soak.Seconds, 0))))
	case c.Limit != nil:
		return c.Limit.append(append(dst, commandLimit))
	case c.Audit != nil:
		return c.Audit.append(append(dst, commandAudit))
	case c.Moment != nil:
		return c.Moment.append(append(dst, commandMoment))
	case c.Backup != nil:
		return c.Backup.append(append(dst, commandBackup))
	}
	invariant.Broken("a command to encode has no operation")
	return nil
}

// DecodeCommand reads the binary form; the keys and values of the Command alias src. The error is ErrBadCommand, and
// level.ErrLater, too, if a later build may have written it: an entry with it must not be passed over.
func DecodeCommand(src []byte) (Command, error) { return decodeCommand(src, nil) }

// Readable reports whether DecodeCommand knows the command.
func Readable(src []byte) bool {
	var put PutOp
	_, err := decodeCommand(src, &put)
	return err == nil
}

// Decoder reads commands one after the other, puts into the same memory. The zero value is ready.
type Decoder struct{ put PutOp }

// Decode is DecodeCommand; the Command is valid until the next call, and the bytes that it aliases as long as src.
func (d *Decoder) Decode(src []byte) (Command, error) { return decodeCommand(src, &d.put) }

func decodeCommand(src []byte, put *PutOp) (Command, error) {
	r := reader{src: src}
	format := r.byte()
	r.known(format <= formatSigned)
	if format < formatCommand {
		r.fail()
	}
	var c Command
	switch kind := r.byte(); kind {
	case commandPut:
		if put == nil {
			put = new(PutOp)
		}
		*put = r.put()
		c.Put = put
	case commandDelete:
		c.Delete = r.delete()
	case commandTxn:
		c.Txn = r.txn()
	case commandCompact:
		c.Compact = &CompactOp{Revision: r.revision()}
	case commandLeaseGrant:
		c.LeaseGrant = &LeaseGrantOp{ID: LeaseID(r.varint()), TTLSeconds: r.varint()}
	case commandLeaseRevoke:
		c.LeaseRevoke = &LeaseRevokeOp{ID: LeaseID(r.varint()), Term: r.uvarint()}
	case commandAlarm:
		c.Alarm = &AlarmOp{Activate: r.flags(1)&1 != 0, Kind: AlarmKind(r.byte()), Member: r.uvarint()}
		r.known(c.Alarm.Kind.known())
	case commandPublish:
		c.Publish = r.publish()
	case commandSessionOpen:
		c.SessionOpen = r.sessionOpen()
	case commandSessionRetire:
		c.SessionRetire = &SessionRetireOp{Member: r.uvarint(), Number: r.uvarint()}
	case commandJob:
		c.Job = r.job()
	case commandAuth:
		c.Auth = r.change()
	case commandRaise:
		c.Raise = &RaiseOp{Finalize: r.flags(1)&1 != 0, Level: level.Level(r.byte()), Of: r.levelView()}
	case commandLevelPolicy:
		c.LevelPolicy = r.levelPolicy()
	case commandSoak:
		c.Soak = &SoakOp{Level: level.Level(r.byte()), Seconds: r.seconds(), Of: r.levelView()}
	case commandLimit:
		c.Limit = r.limit()
	case commandAudit:
		c.Audit = r.audit()
	case commandMoment:
		c.Moment = r.moment()
	case commandBackup:
		c.Backup = r.backup()
	default:
		r.known(isKind(kind))
		r.fail()
	}
	if format == formatSigned {
		c.By = r.credentials()
	}
	if err := r.finish(); err != nil {
		return Command{}, fmt.Errorf("%w: %w", ErrBadCommand, err)
	}
	return c, nil
}

// isKind reports whether this build knows a kind of commands, or zero, which no build writes.
func isKind(kind byte) bool {
	return kind <= commandBackup
}

func (op *PublishOp) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, op.Member)
	dst = appendText(dst, op.Name)
	dst = binary.AppendUvarint(dst, uint64(len(op.ClientURLs)))
	for _, url := range op.ClientURLs {
		dst = appendText(dst, url)
	}
	dst = appendText(dst, op.Version)
	dst = appendText(dst, op.Zone)
	dst = appendText(dst, op.Build)
	dst = append(dst, byte(op.Level))
	return binary.AppendVarint(dst, op.Memory)
}

func (r *reader) publish() *PublishOp {
	op := &PublishOp{Member: r.uvarint(), Name: string(r.bytes())}
	if n := r.count(1); n > 0 {
		op.ClientURLs = make([]string, n)
		for i := range op.ClientURLs {
			op.ClientURLs[i] = string(r.bytes())
		}
	}
	op.Version, op.Zone, op.Build = string(r.bytes()), string(r.bytes()), string(r.bytes())
	op.Level, op.Memory = level.Level(r.byte()), r.varint()
	return op
}

// Flags of a level policy.
const (
	policyInitial  = 1
	policyTarget   = 2 // the release follows
	policyReturned = 4
)

func (op *LevelPolicyOp) append(dst []byte) []byte {
	targets := !op.Target.IsZero()
	dst = append(dst, flag(op.Initial, policyInitial)|flag(targets, policyTarget)|flag(op.Returned, policyReturned),
		byte(op.Policy.Kind))
	dst = op.Of.append(binary.AppendUvarint(dst, uint64(max(op.Policy.Seconds, 0))))
	if targets {
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, uint64(op.Target.Major)), uint64(op.Target.Minor))
	}
	return dst
}

func (r *reader) levelPolicy() *LevelPolicyOp {
	flags := r.flags(policyInitial | policyTarget | policyReturned)
	op := &LevelPolicyOp{Initial: flags&policyInitial != 0, Returned: flags&policyReturned != 0,
		Policy: level.Policy{Kind: level.PolicyKind(r.byte()), Seconds: r.seconds()}, Of: r.levelView()}
	r.known(op.Policy.Kind <= level.PolicyHold)
	if flags&policyTarget != 0 {
		op.Target = level.Release{Major: r.number(), Minor: r.number()}
		if op.Target.IsZero() {
			r.fail()
		}
	}
	return op
}

// number reads an unsigned number of 32 bits.
func (r *reader) number() uint32 {
	n := r.uvarint()
	if n > math.MaxUint32 {
		r.fail()
		return 0
	}
	return uint32(n)
}

func (m *LevelView) append(dst []byte) []byte {
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, m.Generation), m.Config)
	dst = binary.AppendUvarint(dst, uint64(len(m.IDs)))
	for _, id := range m.IDs {
		dst = binary.AppendUvarint(dst, id)
	}
	return dst
}

func (r *reader) levelView() LevelView {
	m := LevelView{Generation: r.uvarint(), Config: r.uvarint()}
	if n := r.count(1); n > 0 {
		m.IDs = make([]uint64, n)
		for i := range m.IDs {
			m.IDs[i] = r.uvarint()
		}
	}
	return m
}

func (op *SessionOpenOp) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, op.Member)
	dst = binary.AppendUvarint(dst, op.Number)
	dst = binary.AppendUvarint(dst, uint64(len(op.Keep)))
	for _, number := range op.Keep {
		dst = binary.AppendUvarint(dst, number)
	}
	return dst
}

func (r *reader) sessionOpen() *SessionOpenOp {
	op := &SessionOpenOp{Member: r.uvarint(), Number: r.uvarint()}
	if n := r.count(1); n > 0 {
		op.Keep = make([]uint64, n)
		for i := range op.Keep {
			op.Keep[i] = r.uvarint()
		}
	}
	return op
}

func (op *JobOp) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, op.ID)
	dst = binary.AppendUvarint(dst, op.Version)
	dst = appendBytes(dst, op.Body)
	dst = binary.AppendUvarint(dst, uint64(len(op.Prune)))
	for _, id := range op.Prune {
		dst = binary.AppendUvarint(dst, id)
	}
	return dst
}

func (r *reader) job() *JobOp {
	op := &JobOp{ID: r.uvarint(), Version: r.uvarint(), Body: r.bytes()}
	if n := r.count(1); n > 0 {
		op.Prune = make([]uint64, n)
		for i := range op.Prune {
			op.Prune[i] = r.uvarint()
		}
	}
	return op
}

// IsJob reports whether the binary form of a command is a JobOp's, without decoding it.
func IsJob(src []byte) bool { return kindOf(src) == commandJob }

// Administers reports whether the binary form of a command is one by which members and operators keep the cluster running, or
// by which a leader ends a lease that expired, without decoding it: not what clients do with keys and leases.
func Administers(src []byte) bool {
	switch kindOf(src) {
	case 0, commandPut, commandDelete, commandTxn, commandLeaseGrant:
		return false
	case commandLeaseRevoke:
		return namesTerm(src[2:])
	}
	return true
}

// namesTerm reports whether the fields of a LeaseRevokeOp name a term: only a leader proposes such a command.
func namesTerm(fields []byte) bool {
	_, n := binary.Varint(fields)
	if n <= 0 {
		return false
	}
	term, n := binary.Uvarint(fields[n:])
	return n > 0 && term != 0
}

// IsAuth reports whether the binary form of a command is that of a change of users or roles, without decoding it.
func IsAuth(src []byte) bool { return kindOf(src) == commandAuth }

// IsBackup reports whether the binary form of a command changes the row of the continuous backup, and nothing else, without
// decoding it.
func IsBackup(src []byte) bool { return kindOf(src) == commandBackup }

// kindOf returns the kind of an encoded command, 0 if it does not begin as one.
func kindOf(src []byte) byte {
	if len(src) < 2 || src[0] != formatCommand && src[0] != formatSigned {
		return 0
	}
	return src[1]
}
