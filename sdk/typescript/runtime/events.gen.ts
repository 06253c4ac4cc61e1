// Made by sdk/go/internal/generate from the catalogue of events. Don't edit it.

import type {
  Account,
  Application,
  AuthMethod,
  AuthRule,
  AuthTemplate,
  AuthUnit,
  Component,
  Connection,
  ConnectionDomain,
  CoreObject,
  Credential,
  Factor,
  Function,
  GivenConsent,
  GroupMember,
  Invitation,
  Job,
  KvBucket,
  KvObject,
  LastingGrant,
  Membership,
  Protocol,
  Resource,
  ResourceSet,
  ResourceSetMember,
  SamlKey,
  ScimConnection,
  Session,
  SignInSettings,
  SubJob,
  TreeAssociation,
  TreeNode,
  User,
  UserSettings,
} from '../src/types.gen.js';

/** EventData is the type of data of each type of events. */
export interface EventData {
  /** An access was denied. */
  'idp.access.denied': {
    record?: {
      actor?: string;
      address?: string;
      count?: number;
      id?: string;
      operation?: string;
      reason?: string;
      record?: string;
      tenant_id?: string;
      time_first?: string;
      time_last?: string;
      version?: number;
    };
  };
  /** An account was created. */
  'idp.account.created': {
    previous?: Record<string, unknown>;
    record: Account;
  };
  /** An account was deleted. */
  'idp.account.deleted': {
    previous?: Record<string, unknown>;
    record: Account;
  };
  /** An account was disabled. */
  'idp.account.disabled': {
    previous?: Record<string, unknown>;
    record: Account;
  };
  /** An account was enabled. */
  'idp.account.enabled': {
    previous?: Record<string, unknown>;
    record: Account;
  };
  /** An account was updated. */
  'idp.account.updated': {
    previous?: Record<string, unknown>;
    record: Account;
  };
  /** The config of an application was updated. */
  'idp.application.config_updated': {
    previous?: Record<string, unknown>;
    record: Application;
  };
  /** An application was created. */
  'idp.application.created': {
    previous?: Record<string, unknown>;
    record: Application;
  };
  /** An application was deleted. */
  'idp.application.deleted': {
    previous?: Record<string, unknown>;
    record: Application;
  };
  /** An application was disabled. */
  'idp.application.disabled': {
    previous?: Record<string, unknown>;
    record: Application;
  };
  /** An application was enabled. */
  'idp.application.enabled': {
    previous?: Record<string, unknown>;
    record: Application;
  };
  /** The IDP of an application was attached. */
  'idp.application.idp_attached': {
    previous?: Record<string, unknown>;
    record: Application;
  };
  /** The IDP of an application was detached. */
  'idp.application.idp_detached': {
    previous?: Record<string, unknown>;
    record: Application;
  };
  /** The MFA of an application was disabled. */
  'idp.application.mfa_disabled': {
    previous?: Record<string, unknown>;
    record: Application;
  };
  /** The MFA of an application was enabled. */
  'idp.application.mfa_enabled': {
    previous?: Record<string, unknown>;
    record: Application;
  };
  /** The secret of an application was refreshed. */
  'idp.application.secret_refreshed': {
    previous?: Record<string, unknown>;
    record: Application;
  };
  /** The SSO of an application was disabled. */
  'idp.application.sso_disabled': {
    previous?: Record<string, unknown>;
    record: Application;
  };
  /** The SSO of an application was enabled. */
  'idp.application.sso_enabled': {
    previous?: Record<string, unknown>;
    record: Application;
  };
  /** An application was updated. */
  'idp.application.updated': {
    previous?: Record<string, unknown>;
    record: Application;
  };
  /** An association was created. */
  'idp.association.created': {
    previous?: Record<string, unknown>;
    record: TreeAssociation;
  };
  /** An association was deleted. */
  'idp.association.deleted': {
    previous?: Record<string, unknown>;
    record: TreeAssociation;
  };
  /** An auth method was created. */
  'idp.auth_method.created': {
    previous?: Record<string, unknown>;
    record: AuthMethod;
  };
  /** An auth method was deleted. */
  'idp.auth_method.deleted': {
    previous?: Record<string, unknown>;
    record: AuthMethod;
  };
  /** An auth method was disabled. */
  'idp.auth_method.disabled': {
    previous?: Record<string, unknown>;
    record: AuthMethod;
  };
  /** An auth method was enabled. */
  'idp.auth_method.enabled': {
    previous?: Record<string, unknown>;
    record: AuthMethod;
  };
  /** An auth method was updated. */
  'idp.auth_method.updated': {
    previous?: Record<string, unknown>;
    record: AuthMethod;
  };
  /** An auth rule was created. */
  'idp.auth_rule.created': {
    previous?: Record<string, unknown>;
    record: AuthRule;
  };
  /** An auth rule was deleted. */
  'idp.auth_rule.deleted': {
    previous?: Record<string, unknown>;
    record: AuthRule;
  };
  /** An auth rule was updated. */
  'idp.auth_rule.updated': {
    previous?: Record<string, unknown>;
    record: AuthRule;
  };
  /** An auth template was created. */
  'idp.auth_template.created': {
    previous?: Record<string, unknown>;
    record: AuthTemplate;
  };
  /** An auth template was deleted. */
  'idp.auth_template.deleted': {
    previous?: Record<string, unknown>;
    record: AuthTemplate;
  };
  /** An auth template was updated. */
  'idp.auth_template.updated': {
    previous?: Record<string, unknown>;
    record: AuthTemplate;
  };
  /** An auth unit was created. */
  'idp.auth_unit.created': {
    previous?: Record<string, unknown>;
    record: AuthUnit;
  };
  /** An auth unit was deleted. */
  'idp.auth_unit.deleted': {
    previous?: Record<string, unknown>;
    record: AuthUnit;
  };
  /** An auth unit was updated. */
  'idp.auth_unit.updated': {
    previous?: Record<string, unknown>;
    record: AuthUnit;
  };
  /** An auth unit member was created. */
  'idp.auth_unit_member.created': {
    previous?: Record<string, unknown>;
    record: GroupMember;
  };
  /** An auth unit member was deleted. */
  'idp.auth_unit_member.deleted': {
    previous?: Record<string, unknown>;
    record: GroupMember;
  };
  /** The authentication of a client failed. */
  'idp.client.authentication_failed': {
    previous?: {
      count?: number;
    };
    record?: {
      address?: string;
      client_id?: string;
      count?: number;
      id?: string;
      method?: string;
      reason?: string;
      tenant_id?: string;
      time_created?: string;
      time_last?: string;
      time_modified?: string;
      version?: number;
    };
  };
  /** A component was created. */
  'idp.component.created': {
    previous?: Record<string, unknown>;
    record: Component;
  };
  /** A component was deleted. */
  'idp.component.deleted': {
    previous?: Record<string, unknown>;
    record: Component;
  };
  /** A component was published. */
  'idp.component.published': {
    previous?: Record<string, unknown>;
    record: Component;
  };
  /** A component was updated. */
  'idp.component.updated': {
    previous?: Record<string, unknown>;
    record: Component;
  };
  /** A connection was created. */
  'idp.connection.created': {
    previous?: Record<string, unknown>;
    record: Connection;
  };
  /** A connection was deleted. */
  'idp.connection.deleted': {
    previous?: Record<string, unknown>;
    record: Connection;
  };
  /** A connection was disabled. */
  'idp.connection.disabled': {
    previous?: Record<string, unknown>;
    record: Connection;
  };
  /** A connection was enabled. */
  'idp.connection.enabled': {
    previous?: Record<string, unknown>;
    record: Connection;
  };
  /** A connection was tested. */
  'idp.connection.tested': {
    ok?: boolean;
    previous?: Record<string, unknown>;
    record: Connection;
  };
  /** A connection was updated. */
  'idp.connection.updated': {
    previous?: Record<string, unknown>;
    record: Connection;
  };
  /** A connection domain was checked. */
  'idp.connection_domain.checked': {
    previous?: Record<string, unknown>;
    record: ConnectionDomain;
  };
  /** A connection domain was created. */
  'idp.connection_domain.created': {
    previous?: Record<string, unknown>;
    record: ConnectionDomain;
  };
  /** A connection domain was deleted. */
  'idp.connection_domain.deleted': {
    previous?: Record<string, unknown>;
    record: ConnectionDomain;
  };
  /** A connection domain was unverified. */
  'idp.connection_domain.unverified': {
    previous?: Record<string, unknown>;
    record: ConnectionDomain;
  };
  /** A connection domain was updated. */
  'idp.connection_domain.updated': {
    previous?: Record<string, unknown>;
    record: ConnectionDomain;
  };
  /** A connection domain was verified. */
  'idp.connection_domain.verified': {
    previous?: Record<string, unknown>;
    record: ConnectionDomain;
  };
  /** A consent was given. */
  'idp.consent.given': {
    address?: string;
    browser?: string;
    previous?: Record<string, unknown>;
    record: GivenConsent;
  };
  /** A consent was withdrawn. */
  'idp.consent.withdrawn': {
    address?: string;
    browser?: string;
    previous?: Record<string, unknown>;
    record: GivenConsent;
  };
  /** A core object was created. */
  'idp.core_object.created': {
    previous?: Record<string, unknown>;
    record: CoreObject;
  };
  /** A core object was deleted. */
  'idp.core_object.deleted': {
    previous?: Record<string, unknown>;
    record: CoreObject;
  };
  /** A core object was updated. */
  'idp.core_object.updated': {
    previous?: Record<string, unknown>;
    record: CoreObject;
  };
  /** A credential was created. */
  'idp.credential.created': {
    previous?: Record<string, unknown>;
    record: Credential;
  };
  /** A credential was deleted. */
  'idp.credential.deleted': {
    previous?: Record<string, unknown>;
    record: Credential;
  };
  /** A credential was updated. */
  'idp.credential.updated': {
    previous?: Record<string, unknown>;
    record: Credential;
  };
  /** A dead letter was deleted. */
  'idp.dead_letter.deleted': {
    record?: {
      consumer?: string;
      id?: string;
      tries?: number;
    };
  };
  /** A dead letter was replayed. */
  'idp.dead_letter.replayed': {
    record?: {
      consumer?: string;
      id?: string;
      tries?: number;
    };
  };
  /** An event subscription was created. */
  'idp.event_subscription.created': {
    record?: {
      delivery?: {
        secret?: string;
        type?: string;
        url?: string;
      };
      event_types?: Array<string>;
      filter?: string;
      id?: string;
      name?: string;
      state?: string;
      status?: string;
      tenant_id?: string;
      time_created?: string;
      time_modified?: string;
      version?: number;
    };
  };
  /** An event subscription was deleted. */
  'idp.event_subscription.deleted': {
    record?: {
      delivery?: {
        previous_secret?: string;
        previous_until?: string;
        secret?: string;
        type?: string;
        url?: string;
      };
      event_types?: Array<string>;
      filter?: string;
      id?: string;
      name?: string;
      state?: string;
      status?: string;
      tenant_id?: string;
      time_created?: string;
      time_modified?: string;
      version?: number;
    };
  };
  /** An event subscription was disabled. */
  'idp.event_subscription.disabled': {
    previous?: {
      state?: string;
      status?: string;
    };
    record?: {
      delivery?: {
        secret?: string;
        type?: string;
        url?: string;
      };
      event_types?: Array<string>;
      filter?: string;
      id?: string;
      name?: string;
      state?: string;
      status?: string;
      tenant_id?: string;
      time_created?: string;
      time_modified?: string;
      version?: number;
    };
  };
  /** An event subscription is failing. */
  'idp.event_subscription.failing': {
    previous?: {
      state?: string;
      status?: string;
    };
    record?: {
      delivery?: {
        secret?: string;
        type?: string;
        url?: string;
      };
      event_types?: Array<string>;
      filter?: string;
      id?: string;
      name?: string;
      state?: string;
      status?: string;
      tenant_id?: string;
      time_created?: string;
      time_modified?: string;
      version?: number;
    };
  };
  /** An event subscription was paused. */
  'idp.event_subscription.paused': {
    previous?: {
      state?: string;
      status?: string;
    };
    record?: {
      delivery?: {
        secret?: string;
        type?: string;
        url?: string;
      };
      event_types?: Array<string>;
      filter?: string;
      id?: string;
      name?: string;
      state?: string;
      status?: string;
      tenant_id?: string;
      time_created?: string;
      time_modified?: string;
      version?: number;
    };
  };
  /** An event subscription was redelivered. */
  'idp.event_subscription.redelivered': {
    event?: string;
    record?: {
      delivery?: {
        secret?: string;
        type?: string;
        url?: string;
      };
      event_types?: Array<string>;
      filter?: string;
      id?: string;
      name?: string;
      state?: string;
      status?: string;
      tenant_id?: string;
      time_created?: string;
      time_modified?: string;
      version?: number;
    };
  };
  /** An event subscription was reset. */
  'idp.event_subscription.reset': {
    previous?: {
      delivery?: {
        secret?: string;
        type?: string;
        url?: string;
      };
    };
    record?: {
      delivery?: {
        previous_secret?: string;
        previous_until?: string;
        secret?: string;
        type?: string;
        url?: string;
      };
      event_types?: Array<string>;
      filter?: string;
      id?: string;
      name?: string;
      state?: string;
      status?: string;
      tenant_id?: string;
      time_created?: string;
      time_modified?: string;
      version?: number;
    };
  };
  /** An event subscription was resumed. */
  'idp.event_subscription.resumed': {
    previous?: {
      state?: string;
      status?: string;
    };
    record?: {
      delivery?: {
        secret?: string;
        type?: string;
        url?: string;
      };
      event_types?: Array<string>;
      filter?: string;
      id?: string;
      name?: string;
      state?: string;
      status?: string;
      tenant_id?: string;
      time_created?: string;
      time_modified?: string;
      version?: number;
    };
  };
  /** An event subscription was updated. */
  'idp.event_subscription.updated': {
    previous?: {
      name?: string;
    };
    record?: {
      delivery?: {
        secret?: string;
        type?: string;
        url?: string;
      };
      event_types?: Array<string>;
      filter?: string;
      id?: string;
      name?: string;
      state?: string;
      status?: string;
      tenant_id?: string;
      time_created?: string;
      time_modified?: string;
      version?: number;
    };
  };
  /** A factor was created. */
  'idp.factor.created': {
    previous?: Record<string, unknown>;
    record: Factor;
  };
  /** A factor was deleted. */
  'idp.factor.deleted': {
    previous?: Record<string, unknown>;
    record: Factor;
  };
  /** A factor was used. */
  'idp.factor.used': {
    previous?: Record<string, unknown>;
    record: Factor;
  };
  /** A function was created. */
  'idp.function.created': {
    previous?: Record<string, unknown>;
    record: Function;
  };
  /** A function was deleted. */
  'idp.function.deleted': {
    previous?: Record<string, unknown>;
    record: Function;
  };
  /** A function was updated. */
  'idp.function.updated': {
    previous?: Record<string, unknown>;
    record: Function;
  };
  /** A function invocation was created. */
  'idp.function_invocation.created': {
    record?: {
      code?: string;
      function_id?: string;
      id?: string;
      outcome?: string;
      revision?: number;
      time_created?: string;
    };
  };
  /** A grant was created. */
  'idp.grant.created': {
    previous?: Record<string, unknown>;
    record: LastingGrant;
  };
  /** A grant ended. */
  'idp.grant.ended': {
    previous?: Record<string, unknown>;
    reason?: string;
    record: LastingGrant;
  };
  /** An invitation was accepted. */
  'idp.invitation.accepted': {
    previous?: Record<string, unknown>;
    record: Invitation;
  };
  /** An invitation was created. */
  'idp.invitation.created': {
    previous?: Record<string, unknown>;
    record: Invitation;
  };
  /** An invitation was deleted. */
  'idp.invitation.deleted': {
    previous?: Record<string, unknown>;
    record: Invitation;
  };
  /** An invitation expired. */
  'idp.invitation.expired': {
    previous?: Record<string, unknown>;
    record: Invitation;
  };
  /** An invitation was resent. */
  'idp.invitation.resent': {
    previous?: Record<string, unknown>;
    record: Invitation;
  };
  /** A job was created. */
  'idp.job.created': {
    previous?: Record<string, unknown>;
    record: Job;
  };
  /** A job was deleted. */
  'idp.job.deleted': {
    previous?: Record<string, unknown>;
    record: Job;
  };
  /** A job finished. */
  'idp.job.finished': {
    previous?: Record<string, unknown>;
    record: Job;
  };
  /** A job was resumed. */
  'idp.job.resumed': {
    previous?: Record<string, unknown>;
    record: Job;
  };
  /** A job was suspended. */
  'idp.job.suspended': {
    previous?: Record<string, unknown>;
    record: Job;
  };
  /** A job was updated. */
  'idp.job.updated': {
    previous?: Record<string, unknown>;
    record: Job;
  };
  /** A KV bucket was created. */
  'idp.kv_bucket.created': {
    previous?: Record<string, unknown>;
    record: KvBucket;
  };
  /** A KV bucket was deleted. */
  'idp.kv_bucket.deleted': {
    previous?: Record<string, unknown>;
    record: KvBucket;
  };
  /** A KV bucket was updated. */
  'idp.kv_bucket.updated': {
    previous?: Record<string, unknown>;
    record: KvBucket;
  };
  /** A KV object was created. */
  'idp.kv_object.created': {
    previous?: Record<string, unknown>;
    record: KvObject;
  };
  /** A KV object was deleted. */
  'idp.kv_object.deleted': {
    previous?: Record<string, unknown>;
    record: KvObject;
  };
  /** A KV object expired. */
  'idp.kv_object.expired': {
    previous?: Record<string, unknown>;
    record: KvObject;
  };
  /** A KV object was updated. */
  'idp.kv_object.updated': {
    previous?: Record<string, unknown>;
    record: KvObject;
  };
  /** A membership was created. */
  'idp.membership.created': {
    previous?: Record<string, unknown>;
    record: Membership;
  };
  /** A membership was deleted. */
  'idp.membership.deleted': {
    memberships?: Array<{
      id?: string;
      node_id?: string;
      object_code?: string;
      sequence?: string;
      user_id?: string;
    }>;
    previous?: Record<string, unknown>;
    record: Membership;
  };
  /** A membership was updated. */
  'idp.membership.updated': {
    previous?: Record<string, unknown>;
    record: Membership;
  };
  /** A message failed. */
  'idp.message.failed': {
    record?: {
      channel?: string;
      id?: string;
      kind?: string;
      reason?: string;
      tenant_id?: string;
      time_created?: string;
      user_id?: string;
    };
  };
  /** A message was refused. */
  'idp.message.refused': {
    record?: {
      channel?: string;
      id?: string;
      kind?: string;
      reason?: string;
      tenant_id?: string;
      time_created?: string;
      user_id?: string;
    };
  };
  /** A node was created. */
  'idp.node.created': {
    previous?: Record<string, unknown>;
    record: TreeNode;
  };
  /** A node was deleted. */
  'idp.node.deleted': {
    previous?: Record<string, unknown>;
    record: TreeNode;
  };
  /** A node was disabled. */
  'idp.node.disabled': {
    previous?: Record<string, unknown>;
    record: TreeNode;
  };
  /** A node was enabled. */
  'idp.node.enabled': {
    previous?: Record<string, unknown>;
    record: TreeNode;
  };
  /** A node was moved. */
  'idp.node.moved': {
    new_path?: Array<string>;
    nodes_below?: number;
    old_path?: Array<string>;
    previous?: Record<string, unknown>;
    record: TreeNode;
  };
  /** A node was updated. */
  'idp.node.updated': {
    previous?: Record<string, unknown>;
    record: TreeNode;
  };
  /** A protocol was disabled. */
  'idp.protocol.disabled': {
    previous?: Record<string, unknown>;
    record: Protocol;
  };
  /** A protocol was enabled. */
  'idp.protocol.enabled': {
    previous?: Record<string, unknown>;
    record: Protocol;
  };
  /** The secret of a protocol was reset. */
  'idp.protocol.secret_reset': {
    previous?: Record<string, unknown>;
    record: Protocol;
  };
  /** A protocol was updated. */
  'idp.protocol.updated': {
    previous?: Record<string, unknown>;
    record: Protocol;
  };
  /** A resource was created. */
  'idp.resource.created': {
    previous?: Record<string, unknown>;
    record: Resource;
  };
  /** A resource was deleted. */
  'idp.resource.deleted': {
    previous?: Record<string, unknown>;
    record: Resource;
  };
  /** A resource was updated. */
  'idp.resource.updated': {
    previous?: Record<string, unknown>;
    record: Resource;
  };
  /** A resource set was created. */
  'idp.resource_set.created': {
    previous?: Record<string, unknown>;
    record: ResourceSet;
  };
  /** A resource set was deleted. */
  'idp.resource_set.deleted': {
    previous?: Record<string, unknown>;
    record: ResourceSet;
  };
  /** A resource set was updated. */
  'idp.resource_set.updated': {
    previous?: Record<string, unknown>;
    record: ResourceSet;
  };
  /** A resource set member was created. */
  'idp.resource_set_member.created': {
    previous?: Record<string, unknown>;
    record: ResourceSetMember;
  };
  /** A resource set member was deleted. */
  'idp.resource_set_member.deleted': {
    previous?: Record<string, unknown>;
    record: ResourceSetMember;
  };
  /** A resource set member was updated. */
  'idp.resource_set_member.updated': {
    previous?: Record<string, unknown>;
    record: ResourceSetMember;
  };
  /** A SAML key was activated. */
  'idp.saml_key.activated': {
    previous?: Record<string, unknown>;
    record: SamlKey;
  };
  /** A SAML key was created. */
  'idp.saml_key.created': {
    previous?: Record<string, unknown>;
    record: SamlKey;
  };
  /** A SAML key was deleted. */
  'idp.saml_key.deleted': {
    previous?: Record<string, unknown>;
    record: SamlKey;
  };
  /** A SAML key was updated. */
  'idp.saml_key.updated': {
    previous?: Record<string, unknown>;
    record: SamlKey;
  };
  /** A SCIM connection was approved. */
  'idp.scim_connection.approved': {
    previous?: Record<string, unknown>;
    record: ScimConnection;
  };
  /** A SCIM connection was created. */
  'idp.scim_connection.created': {
    previous?: Record<string, unknown>;
    record: ScimConnection;
  };
  /** A SCIM connection was deleted. */
  'idp.scim_connection.deleted': {
    previous?: Record<string, unknown>;
    record: ScimConnection;
  };
  /** A SCIM connection was held. */
  'idp.scim_connection.held': {
    previous?: Record<string, unknown>;
    record: ScimConnection;
  };
  /** A SCIM connection was rejected. */
  'idp.scim_connection.rejected': {
    previous?: Record<string, unknown>;
    record: ScimConnection;
  };
  /** A SCIM connection was updated. */
  'idp.scim_connection.updated': {
    previous?: Record<string, unknown>;
    record: ScimConnection;
  };
  /** A SCIM link was adopted. */
  'idp.scim_link.adopted': {
    record?: {
      connection_id?: string;
      external_id?: string;
      id?: string;
      tenant_id?: string;
      time_modified?: string;
      type?: string;
      version?: number;
    };
  };
  /** A SCIM link was created. */
  'idp.scim_link.created': {
    record?: {
      connection_id?: string;
      external_id?: string;
      id?: string;
      tenant_id?: string;
      time_modified?: string;
      type?: string;
      version?: number;
    };
  };
  /** A SCIM link is gone. */
  'idp.scim_link.gone': {
    record?: {
      connection_id?: string;
      external_id?: string;
      id?: string;
      tenant_id?: string;
      time_modified?: string;
      type?: string;
      version?: number;
    };
  };
  /** A SCIM link was revived. */
  'idp.scim_link.revived': {
    record?: {
      connection_id?: string;
      external_id?: string;
      id?: string;
      tenant_id?: string;
      time_modified?: string;
      type?: string;
      version?: number;
    };
  };
  /** A session was created. */
  'idp.session.created': {
    known_browser?: boolean;
    previous?: Record<string, unknown>;
    record: Session;
  };
  /** A session ended. */
  'idp.session.ended': {
    previous?: Record<string, unknown>;
    reason?: string;
    record: Session;
  };
  /** A session was stepped up. */
  'idp.session.stepped_up': {
    known_browser?: boolean;
    previous?: Record<string, unknown>;
    record: Session;
  };
  /** A sign-in was completed. */
  'idp.sign_in.completed': {
    previous?: {
      applications?: Array<unknown>;
      time_expires?: string;
      time_used?: string;
    };
    record?: {
      address?: string;
      app_id?: string;
      browser?: string;
      flow_id?: string;
      fresh?: boolean;
      id?: string;
      protocol?: string;
      reason?: string;
      rule_id?: string;
      session_id?: string;
      tenant_id?: string;
      time_created?: string;
      user_id?: string;
    };
  };
  /** A sign-in failed. */
  'idp.sign_in.failed': {
    record?: {
      address?: string;
      app_id?: string;
      browser?: string;
      flow_id?: string;
      fresh?: boolean;
      id?: string;
      protocol?: string;
      reason?: string;
      rule_id?: string;
      session_id?: string;
      tenant_id?: string;
      time_created?: string;
      user_id?: string;
    };
  };
  /** A sign-in was refused. */
  'idp.sign_in.refused': {
    record?: {
      address?: string;
      app_id?: string;
      browser?: string;
      flow_id?: string;
      fresh?: boolean;
      id?: string;
      protocol?: string;
      reason?: string;
      rule_id?: string;
      session_id?: string;
      tenant_id?: string;
      time_created?: string;
      user_id?: string;
    };
  };
  /** The sign-in settings were updated. */
  'idp.sign_in_settings.updated': {
    previous?: Record<string, unknown>;
    record: SignInSettings;
  };
  /** A sub job was created. */
  'idp.sub_job.created': {
    previous?: Record<string, unknown>;
    record: SubJob;
  };
  /** A sub job finished. */
  'idp.sub_job.finished': {
    previous?: Record<string, unknown>;
    record: SubJob;
  };
  /** A sub job was updated. */
  'idp.sub_job.updated': {
    previous?: Record<string, unknown>;
    record: SubJob;
  };
  /** A token ended. */
  'idp.token.ended': {
    record?: {
      id?: string;
      token_id?: string;
      until?: string;
    };
  };
  /** A token family was reused. */
  'idp.token_family.reused': {
    address?: string;
    browser?: string;
    record?: {
      app_id?: string;
      client_id?: string;
      id?: string;
      scope?: Array<string>;
      session_id?: string;
      tenant_id?: string;
      time_created?: string;
      time_modified?: string;
      user_id?: string;
      version?: number;
    };
  };
  /** A user was created. */
  'idp.user.created': {
    invite?: boolean;
    previous?: Record<string, unknown>;
    record: User;
  };
  /** A user was deleted. */
  'idp.user.deleted': {
    previous?: Record<string, unknown>;
    record: User;
  };
  /** A user was locked. */
  'idp.user.locked': {
    previous?: Record<string, unknown>;
    record: User;
  };
  /** The login of a user failed. */
  'idp.user.login_failed': {
    previous?: Record<string, unknown>;
    record: User;
  };
  /** The login of a user was verified. */
  'idp.user.login_verified': {
    previous?: Record<string, unknown>;
    record: User;
  };
  /** The organization of a user was changed. */
  'idp.user.organization_changed': {
    from_node_id?: string;
    object_code?: string;
    previous?: Record<string, unknown>;
    record: User;
    to_node_id?: string;
  };
  /** The password of a user was changed. */
  'idp.user.password_changed': {
    previous?: Record<string, unknown>;
    record: User;
  };
  /** A user was reinstated. */
  'idp.user.reinstated': {
    previous?: Record<string, unknown>;
    record: User;
  };
  /** A user resigned. */
  'idp.user.resigned': {
    previous?: Record<string, unknown>;
    reason?: string;
    record: User;
    successor_id?: string;
  };
  /** A user was unlocked. */
  'idp.user.unlocked': {
    previous?: Record<string, unknown>;
    record: User;
  };
  /** A user was updated. */
  'idp.user.updated': {
    previous?: Record<string, unknown>;
    record: User;
  };
  /** The user settings were updated. */
  'idp.user_settings.updated': {
    previous?: Record<string, unknown>;
    record: UserSettings;
  };
}

export const eventTypes: ReadonlySet<string> = /* @__PURE__ */ new Set([
  'idp.access.denied',
  'idp.account.created',
  'idp.account.deleted',
  'idp.account.disabled',
  'idp.account.enabled',
  'idp.account.updated',
  'idp.application.config_updated',
  'idp.application.created',
  'idp.application.deleted',
  'idp.application.disabled',
  'idp.application.enabled',
  'idp.application.idp_attached',
  'idp.application.idp_detached',
  'idp.application.mfa_disabled',
  'idp.application.mfa_enabled',
  'idp.application.secret_refreshed',
  'idp.application.sso_disabled',
  'idp.application.sso_enabled',
  'idp.application.updated',
  'idp.association.created',
  'idp.association.deleted',
  'idp.auth_method.created',
  'idp.auth_method.deleted',
  'idp.auth_method.disabled',
  'idp.auth_method.enabled',
  'idp.auth_method.updated',
  'idp.auth_rule.created',
  'idp.auth_rule.deleted',
  'idp.auth_rule.updated',
  'idp.auth_template.created',
  'idp.auth_template.deleted',
  'idp.auth_template.updated',
  'idp.auth_unit.created',
  'idp.auth_unit.deleted',
  'idp.auth_unit.updated',
  'idp.auth_unit_member.created',
  'idp.auth_unit_member.deleted',
  'idp.client.authentication_failed',
  'idp.component.created',
  'idp.component.deleted',
  'idp.component.published',
  'idp.component.updated',
  'idp.connection.created',
  'idp.connection.deleted',
  'idp.connection.disabled',
  'idp.connection.enabled',
  'idp.connection.tested',
  'idp.connection.updated',
  'idp.connection_domain.checked',
  'idp.connection_domain.created',
  'idp.connection_domain.deleted',
  'idp.connection_domain.unverified',
  'idp.connection_domain.updated',
  'idp.connection_domain.verified',
  'idp.consent.given',
  'idp.consent.withdrawn',
  'idp.core_object.created',
  'idp.core_object.deleted',
  'idp.core_object.updated',
  'idp.credential.created',
  'idp.credential.deleted',
  'idp.credential.updated',
  'idp.dead_letter.deleted',
  'idp.dead_letter.replayed',
  'idp.event_subscription.created',
  'idp.event_subscription.deleted',
  'idp.event_subscription.disabled',
  'idp.event_subscription.failing',
  'idp.event_subscription.paused',
  'idp.event_subscription.redelivered',
  'idp.event_subscription.reset',
  'idp.event_subscription.resumed',
  'idp.event_subscription.updated',
  'idp.factor.created',
  'idp.factor.deleted',
  'idp.factor.used',
  'idp.function.created',
  'idp.function.deleted',
  'idp.function.updated',
  'idp.function_invocation.created',
  'idp.grant.created',
  'idp.grant.ended',
  'idp.invitation.accepted',
  'idp.invitation.created',
  'idp.invitation.deleted',
  'idp.invitation.expired',
  'idp.invitation.resent',
  'idp.job.created',
  'idp.job.deleted',
  'idp.job.finished',
  'idp.job.resumed',
  'idp.job.suspended',
  'idp.job.updated',
  'idp.kv_bucket.created',
  'idp.kv_bucket.deleted',
  'idp.kv_bucket.updated',
  'idp.kv_object.created',
  'idp.kv_object.deleted',
  'idp.kv_object.expired',
  'idp.kv_object.updated',
  'idp.membership.created',
  'idp.membership.deleted',
  'idp.membership.updated',
  'idp.message.failed',
  'idp.message.refused',
  'idp.node.created',
  'idp.node.deleted',
  'idp.node.disabled',
  'idp.node.enabled',
  'idp.node.moved',
  'idp.node.updated',
  'idp.protocol.disabled',
  'idp.protocol.enabled',
  'idp.protocol.secret_reset',
  'idp.protocol.updated',
  'idp.resource.created',
  'idp.resource.deleted',
  'idp.resource.updated',
  'idp.resource_set.created',
  'idp.resource_set.deleted',
  'idp.resource_set.updated',
  'idp.resource_set_member.created',
  'idp.resource_set_member.deleted',
  'idp.resource_set_member.updated',
  'idp.saml_key.activated',
  'idp.saml_key.created',
  'idp.saml_key.deleted',
  'idp.saml_key.updated',
  'idp.scim_connection.approved',
  'idp.scim_connection.created',
  'idp.scim_connection.deleted',
  'idp.scim_connection.held',
  'idp.scim_connection.rejected',
  'idp.scim_connection.updated',
  'idp.scim_link.adopted',
  'idp.scim_link.created',
  'idp.scim_link.gone',
  'idp.scim_link.revived',
  'idp.session.created',
  'idp.session.ended',
  'idp.session.stepped_up',
  'idp.sign_in.completed',
  'idp.sign_in.failed',
  'idp.sign_in.refused',
  'idp.sign_in_settings.updated',
  'idp.sub_job.created',
  'idp.sub_job.finished',
  'idp.sub_job.updated',
  'idp.token.ended',
  'idp.token_family.reused',
  'idp.user.created',
  'idp.user.deleted',
  'idp.user.locked',
  'idp.user.login_failed',
  'idp.user.login_verified',
  'idp.user.organization_changed',
  'idp.user.password_changed',
  'idp.user.reinstated',
  'idp.user.resigned',
  'idp.user.unlocked',
  'idp.user.updated',
  'idp.user_settings.updated',
]);
