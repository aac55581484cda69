package kv

import "github.com/quorate/quorate/internal/base/level"

// kindLevels has the feature level of each kind of command, zero for a number without a kind. The commands
// that raise the level need only the first.
var kindLevels = [...]level.Level{
	commandPut: level.First, commandDelete: level.First, commandTxn: level.First, commandCompact: level.First,
	commandLeaseGrant: level.First, commandLeaseRevoke: level.First, commandAlarm: level.First, commandPublish: level.First,
	commandSessionOpen: level.First, commandSessionRetire: level.First, commandJob: level.First, commandRaise: level.First,
	commandAuth: level.First, commandLevelPolicy: level.First, commandSoak: level.First,
}

// Needs returns the feature level below which an encoded command is not applied; false if this build knows no such command.
func Needs(payload []byte) (level.Level, bool) {
	kind := int(kindOf(payload))
	if kind >= len(kindLevels) || kindLevels[kind] == 0 {
		return 0, false
	}
	return kindLevels[kind], true
}
