package kv

import (
	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/level"
)

// kindLevels has the feature level of each kind of command, zero for a number without a kind. The commands
// that raise the level need only the first.
var kindLevels = [...]level.Level{
	commandPut: level.First, commandDelete: level.First, commandTxn: level.First, commandCompact: level.First,
	commandLeaseGrant: level.First, commandLeaseRevoke: level.First, commandAlarm: level.First, commandPublish: level.First,
	commandSessionOpen: level.First, commandSessionRetire: level.First, commandJob: level.First, commandRaise: level.First,
	commandAuth: level.First, commandLevelPolicy: level.First, commandSoak: level.First, commandLimit: level.Second,
	commandAudit: level.Second, commandMoment: level.Second, commandBackup: level.Second,
}

// Commands that have a kind of their own inside: its place in the encoding, and the feature level of each, zero for a number
// without a kind. The other enumerations of commands (those of Check) have no level: a value that is added to one needs a kind
// or format of its own, which earlier builds refuse.
var (
	authLevels = [...]level.Level{
		0:           level.First, // no kind, but damage: the decoder refuses it
		auth.Enable: level.First, auth.Disable: level.First, auth.UserAdd: level.First, auth.UserDelete: level.First,
		auth.UserPassword: level.First, auth.UserGrantRole: level.First, auth.UserRevokeRole: level.First,
		auth.RoleAdd: level.First, auth.RoleDelete: level.First, auth.GrantPermission: level.First,
		auth.RevokePermission: level.First, auth.JoinTokenAdd: level.First, auth.JoinTokenDelete: level.First,
		auth.JoinTokenUse: level.First,
	}
	alarmLevels  = [...]level.Level{AlarmNone: level.First, AlarmNoSpace: level.First, AlarmCorrupt: level.First}
	policyLevels = [...]level.Level{level.PolicyUnset: level.First, level.PolicySoak: level.First, level.PolicyNow: level.First,
		level.PolicyHold: level.First}
	limitLevels = [...]level.Level{0: level.Second, // no kind, but damage: the decoder refuses it
		limitSet: level.Second, limitDelete: level.Second, limitCount: level.Second}
	auditLevels  = [...]level.Level{0: level.Second, AuditPolicy: level.Second, AuditHead: level.Second}
	backupLevels = [...]level.Level{0: level.Second, BackupSet: level.Second, BackupAppoint: level.Second,
		BackupReport: level.Second, BackupProve: level.Second, BackupProved: level.Second, BackupClaim: level.Second}
)

const (
	authKindAt   = 2
	alarmKindAt  = 3
	policyKindAt = 3
	limitKindAt  = 2
	auditKindAt  = 2
	backupKindAt = 2
)

// Beginnings of the commands that clients send most.
var (
	headOfPut = []byte{formatCommand, commandPut}
	headOfTxn = []byte{formatCommand, commandTxn}
)

// Head returns as much of the encoded command as Needs reads. The kind of a put or a transaction says it: they are not encoded,
// and need not have been checked. The caller must not change what it gets.
func (c *Command) Head() []byte {
	switch {
	case c.Put != nil:
		return headOfPut
	case c.Txn != nil:
		return headOfTxn
	}
	return c.Append(nil)
}

// Needs returns the feature level below which an encoded command is not applied; false if this build knows no such command.
func Needs(payload []byte) (level.Level, bool) {
	kind := int(kindOf(payload))
	if kind >= len(kindLevels) || kindLevels[kind] == 0 {
		return 0, false
	}
	inner := level.First
	switch kind {
	case commandAuth:
		inner = innerLevel(authLevels[:], payload, authKindAt)
	case commandAlarm:
		inner = innerLevel(alarmLevels[:], payload, alarmKindAt)
	case commandLevelPolicy:
		inner = innerLevel(policyLevels[:], payload, policyKindAt)
	case commandLimit:
		inner = innerLevel(limitLevels[:], payload, limitKindAt)
	case commandAudit:
		inner = innerLevel(auditLevels[:], payload, auditKindAt)
	case commandBackup:
		inner = innerLevel(backupLevels[:], payload, backupKindAt)
	}
	return max(inner, kindLevels[kind]), inner != 0
}

// innerLevel returns the level of the kind at a place of a payload, zero if there is no such kind. A payload that is too short
// is no command of any build, and changes nothing.
func innerLevel(levels []level.Level, payload []byte, at int) level.Level {
	if len(payload) <= at {
		return level.First
	}
	kind := int(payload[at])
	if kind >= len(levels) {
		return 0
	}
	return levels[kind]
}
