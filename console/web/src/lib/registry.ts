// What a screen tells the shell about itself.
import type {ComponentType} from 'preact';
import type {IconName} from '../ui/icon';

export type Group = 'home' | 'people' | 'access' | 'activity' | 'automation' | 'setup';

export interface Screen {
  name: string; // the segment of the path
  group: Group;
  icon: IconName;
  title: {en: string; zh: string};
  load: () => Promise<{default: ComponentType}>; // the code of a screen is loaded when it is opened first
  scope?: string; // without it the screen is not offered
}

/** The screens, in the order of the navigation. screens.ts fills it, so that what looks here does not import them. */
export const screens: Screen[] = [];
