import type {Event} from '../src/types.gen.js';
import {eventTypes, type EventData} from './events.gen.js';

/** EventType is a type of events as events have it: with the prefix idp. */
export type EventType = keyof EventData;

type Envelope = Omit<Event, 'type' | 'data'>;

/** EventOf is an event of one type. */
export type EventOf<T extends EventType> = Envelope & {type: T; data: EventData[T]};

/** UnknownEvent is an event whose type this version of the SDK does not know. */
export type UnknownEvent = Envelope & {type: 'unknown'; unknown_type: string; data: Record<string, unknown>};

/** PlatformEvent is any event. Its `type` tells the type of its `data`. */
export type PlatformEvent = {[T in EventType]: EventOf<T>}[EventType] | UnknownEvent;

/** typedEvent gives the data of an event its type: of an event of the feed, or of the body of a webhook's request. */
export function typedEvent(from: Event | string): PlatformEvent {
  const event = (typeof from === 'string' ? JSON.parse(from) : from) as Event;
  if (eventTypes.has(event.type)) return event as unknown as PlatformEvent;
  return {...event, type: 'unknown', unknown_type: event.type};
}
