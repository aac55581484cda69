package rpc

import (
	"slices"

	"google.golang.org/grpc"

	"github.com/quorate/quorate/api/quoratepb"
)

// historyDesc is the service. Its answers are counted before they are collected.
func historyDesc(h *historyService) *grpc.ServiceDesc {
	desc := quoratepb.History_ServiceDesc
	desc.Methods = slices.Clone(desc.Methods)
	for i := range desc.Methods {
		switch m := &desc.Methods[i]; m.MethodName {
		case "Versions":
			m.Handler = unaryHandler(h, quoratepb.History_Versions_FullMethodName, h.serveVersions)
		case "Deleted":
			m.Handler = unaryHandler(h, quoratepb.History_Deleted_FullMethodName, h.serveDeleted)
		case "Changes":
			m.Handler = unaryHandler(h, quoratepb.History_Changes_FullMethodName, h.serveChanges)
		case "RevisionAt":
			m.Handler = unaryHandler(h, quoratepb.History_RevisionAt_FullMethodName, h.serveRevisionAt)
		}
	}
	return &desc
}
