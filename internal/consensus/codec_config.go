package consensus

import (
	"encoding/binary"

	"github.com/quorate/quorate/internal/base/level"
)

// configForm is the number at the front of a configuration change, a change request and snapshot metadata. It covers the
// configuration and the members in them. It rises with a new field, and so does it with a new flag of a member, if a build that
// ignores the flag would decide otherwise: all unknown ones are refused.
const configForm = 1

// Flags of a member.
const (
	memberPromote  = 1
	memberJoining  = 2
	memberFormer   = 4 // its former URLs follow
	memberStorage  = 8 // its storage id follows
	memberCordoned = 16
)

func appendIDs(dst []byte, ids []MemberID) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(ids)))
	for _, id := range ids {
		dst = appendMember(dst, id)
	}
	return dst
}

func (r *reader) ids() []MemberID {
	n := r.count(8, idSize)
	if n == 0 {
		return nil
	}
	ids := make([]MemberID, n)
	for i := range ids {
		ids[i] = r.member()
	}
	return ids
}

func appendAttributes(dst []byte, m *Member) []byte {
	dst = appendMember(dst, m.ID)
	dst = binary.AppendUvarint(dst, uint64(len(m.Name)))
	dst = append(dst, m.Name...)
	dst = appendTexts(dst, m.PeerURLs)
	moves := len(m.FormerURLs) > 0
	var storage []byte
	if !m.Storage.IsZero() {
		storage = m.Storage[:]
	}
	dst = append(dst, flag(m.Promote)*memberPromote|flag(m.Joining)*memberJoining|flag(moves)*memberFormer|
		flag(storage != nil)*memberStorage|flag(m.Cordoned)*memberCordoned)
	if moves {
		dst = appendTexts(dst, m.FormerURLs)
	}
	return append(dst, storage...)
}

func appendTexts(dst []byte, texts []string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(texts)))
	for _, text := range texts {
		dst = binary.AppendUvarint(dst, uint64(len(text)))
		dst = append(dst, text...)
	}
	return dst
}

func flag(set bool) byte {
	if set {
		return 1
	}
	return 0
}

func (r *reader) attributes() Member {
	m := Member{ID: r.member(), Name: string(r.blob()), PeerURLs: r.texts()}
	flags := r.flags(memberPromote | memberJoining | memberFormer | memberStorage | memberCordoned)
	m.Promote, m.Joining, m.Cordoned = flags&memberPromote != 0, flags&memberJoining != 0, flags&memberCordoned != 0
	if flags&memberFormer != 0 {
		m.FormerURLs = r.texts()
	}
	if flags&memberStorage != 0 {
		m.Storage = r.storage()
	}
	return m
}

func (r *reader) texts() []string {
	n := r.count(1, textSize)
	if n == 0 {
		return nil
	}
	texts := make([]string, n)
	for i := range texts {
		texts[i] = string(r.blob())
	}
	return texts
}

// AppendConfig encodes c after dst.
func AppendConfig(dst []byte, c *Config) []byte {
	dst = appendIDs(dst, c.Voters)
	dst = appendIDs(dst, c.Outgoing)
	dst = appendIDs(dst, c.Learners)
	dst = appendIDs(dst, c.LearnersNext)
	dst = binary.AppendUvarint(dst, uint64(len(c.Members)))
	for i := range c.Members {
		dst = appendAttributes(dst, &c.Members[i])
	}
	return dst
}

func (r *reader) config() Config {
	c := Config{Voters: r.ids(), Outgoing: r.ids(), Learners: r.ids(), LearnersNext: r.ids()}
	if n := r.count(memberMinBytes, memberSize); n > 0 {
		c.Members = make([]Member, n)
		for i := range c.Members {
			c.Members[i] = r.attributes()
		}
	}
	return c
}

// AppendConfigChange encodes c after dst: the payload of an EntryConfig.
func AppendConfigChange(dst []byte, c *ConfigChange) []byte {
	dst = append(dst, configForm, byte(c.Protocol), flag(c.Abort))
	dst = appendConfigID(dst, c.Replaces)
	dst = AppendConfig(dst, &c.Config)
	return appendIDs(dst, c.Tombs)
}

// DecodeConfigChange reads what AppendConfigChange wrote, and nothing after it. The error is level.ErrLater or ErrCorrupt.
func DecodeConfigChange(src []byte) (ConfigChange, error) {
	r := reader{src: src}
	r.form(configForm)
	c := ConfigChange{
		Protocol: r.protocol(), Abort: r.flags(1) != 0, Replaces: r.configID(), Config: r.config(), Tombs: r.ids(),
	}
	return c, r.alone()
}

// AppendChangeRequest encodes c after dst: the payload of a Proposal of kind EntryConfig.
func AppendChangeRequest(dst []byte, c *ChangeRequest) []byte {
	dst = append(dst, configForm, byte(c.Protocol), flag(c.Abort))
	dst = appendConfigID(dst, c.Expected)
	dst = binary.AppendUvarint(dst, uint64(len(c.Steps)))
	for i := range c.Steps {
		dst = append(dst, byte(c.Steps[i].Kind))
		dst = appendAttributes(dst, &c.Steps[i].Member)
	}
	return dst
}

// DecodeChangeRequest reads what AppendChangeRequest wrote, and nothing after it. The error is level.ErrLater or ErrCorrupt.
func DecodeChangeRequest(src []byte) (ChangeRequest, error) {
	r := reader{src: src}
	r.form(configForm)
	c := ChangeRequest{Protocol: r.protocol(), Abort: r.flags(1) != 0, Expected: r.configID()}
	if n := r.count(memberMinBytes+1, stepSize); n > 0 {
		c.Steps = make([]ChangeStep, n)
		for i := range c.Steps {
			c.Steps[i] = ChangeStep{Kind: known(&r, ChangeKind(r.octet()), ChangeUncordon), Member: r.attributes()}
		}
	}
	return c, r.alone()
}

func (r *reader) protocol() Protocol { return known(r, Protocol(r.octet()), lastProtocol) }

// AppendConfigID encodes id after dst: the payload of an EntryNoop that settles the configuration id.
func AppendConfigID(dst []byte, id ConfigID) []byte { return appendConfigID(dst, id) }

// DecodeConfigID reads what AppendConfigID wrote, and nothing after it.
func DecodeConfigID(src []byte) (ConfigID, error) {
	r := reader{src: src}
	id := r.configID()
	return id, r.alone()
}

// AppendSnapshotMeta encodes s after dst.
func AppendSnapshotMeta(dst []byte, s *SnapshotMeta) []byte {
	dst = append(dst, configForm)
	dst = appendPosition(dst, s.Position)
	dst = AppendConfig(dst, &s.Config)
	dst = appendConfigID(dst, s.ConfigID)
	dst = append(dst, byte(s.Protocol), flag(s.Open))
	return appendIDs(dst, s.Tombs)
}

// DecodeSnapshotMeta reads what AppendSnapshotMeta wrote. The error is level.ErrLater or ErrCorrupt.
func DecodeSnapshotMeta(src []byte) (s SnapshotMeta, rest []byte, err error) {
	r := reader{src: src}
	s = r.snapshotMeta()
	rest, err = r.end()
	return s, rest, err
}

func (r *reader) snapshotMeta() SnapshotMeta {
	r.form(configForm)
	return SnapshotMeta{
		Position: r.position(), Config: r.config(), ConfigID: r.configID(),
		Protocol: r.protocol(), Open: r.flags(1) != 0, Tombs: r.ids(),
	}
}

// CheckEntry returns an error if this build cannot follow an entry that is to be in its log: the entry is of a later kind, or
// brings a configuration, or settles one, in a form that does not decode. A member that has such an entry, and ignored it,
// would count by an older configuration than the others. Commands are judged where they are applied. The error is
// level.ErrLater or ErrCorrupt.
func CheckEntry(e *Entry) (err error) {
	switch {
	case e.Kind == EntryConfig:
		_, err = DecodeConfigChange(e.Payload)
	case e.Kind == EntryNoop && len(e.Payload) > 0:
		_, err = DecodeConfigID(e.Payload)
	case e.Kind > EntryAbort:
		err = level.ErrLater
	}
	return err
}
