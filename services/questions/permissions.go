package questions

import "github.com/idplatform/idplatform/pkg/bus"

// GrantedNode is a tree node, or, where it is the root, its whole tree.
type GrantedNode struct {
	ObjectCode string `json:"object_code"`
	NodeID     string `json:"node_id"`
}

// GrantsOfNode asks how much is granted to a node. Without an answer the node is not deleted.
var GrantsOfNode = bus.Question[GrantedNode, Count]{Service: "permissions", Name: "grants-of-node"}
